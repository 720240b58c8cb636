// The tiles of the WGMMA rungs in shared memory, and their products.
//
// A tile has 128 rows of 128 features, bf16, as two boxes of 64 features: a row of a box is 128
// bytes, with a 128-byte swizzle.
#pragma once

#include <cstdint>

#include "../common/ring.cuh"
#include "../common/tma.cuh"
#include "../common/wgmma.cuh"
#include "rows.cuh"

namespace sparsek {

constexpr int kTileRows = 128;   // queries of a thread block, and keys of a tile
constexpr int kGroupRows = 64;   // queries of a warp group, and rows of a product
constexpr int kBoxColumns = 64;  // as wide as the swizzle
constexpr int kBoxes = kFeatures / kBoxColumns;
constexpr int kRowBytes = kBoxColumns * static_cast<int>(sizeof(__nv_bfloat16));
constexpr int kBoxBytes = kTileRows * kRowBytes;
constexpr int kTileBytes = kBoxes * kBoxBytes;
constexpr int kSwizzleBytes = 8 * kRowBytes;  // 8 rows of a box, one period of the swizzle
constexpr int kProductK = 16;
constexpr int kScores = kTileRows / 2;  // of a tile, in a thread
constexpr int kSums = kFeatures / 2;    // of the output, in a thread
constexpr int kOutSteps = kTileRows / kProductK;
constexpr int kAlignment = 1024;  // of a 128-byte swizzle

static_assert(kTileRows == 128 && kFeatures == 128, "both products have 128 columns");

// All of Q, K and V: rows of a tile of each. Ends the process where one does not follow the other.
inline CUtensorMap tile_map(const AttentionCausalOperands& p) {
  const std::size_t head = static_cast<std::size_t>(p.sequence) * kFeatures;
  const std::uint64_t kv_heads = p.heads / p.group;
  if (p.k != p.q + p.heads * head || p.v != p.k + kv_heads * head) {
    usage_error("this kernel needs Q, K and V one after another in one buffer");
  }
  const std::uint64_t heads = p.heads + 2 * kv_heads;
  return matrix_map(p.q, heads * p.sequence, kFeatures, kTileRows, kBoxColumns,
                    CU_TENSOR_MAP_SWIZZLE_128B);
}

// Requests the tile whose first row is `row` of the map; by one thread.
__device__ __forceinline__ void load_tile(unsigned char* to, const CUtensorMap* map, int row,
                                          Barrier* full) {
  barrier_arrive_expect(full, kTileBytes);
#pragma unroll
  for (int box = 0; box < kBoxes; ++box) {
    tma_load(to + box * kBoxBytes, map, row, box * kBoxColumns, full);
  }
}

// scores = queries * keys^T, one group of products. `queries` describes the warp group's rows of
// the tile of Q, `keys` the tile of K.
__device__ __forceinline__ void start_scores(float (&scores)[kScores], std::uint64_t queries,
                                             std::uint64_t keys) {
  wgmma_fence();
#pragma unroll
  for (int step = 0; step < kFeatures / kProductK; ++step) {
    const int box = step * kProductK / kBoxColumns;
    const int offset = box * kBoxBytes + step * kProductK % kBoxColumns * 2;
    wgmma_m64n128k16_bf16<Major::kK>(scores, advance(queries, offset), advance(keys, offset),
                                     step > 0);
  }
  wgmma_commit();
}

// sums += weights * values, one group of products. `values` describes the tile of V.
__device__ __forceinline__ void start_sums(float (&sums)[kSums],
                                           const std::uint32_t (&weights)[kOutSteps][4],
                                           std::uint64_t values) {
  wgmma_fence();
#pragma unroll
  for (int step = 0; step < kOutSteps; ++step) {
    wgmma_m64n128k16_bf16<Major::kColumns>(sums, weights[step],
                                           advance(values, step * kProductK * kRowBytes), true);
  }
  wgmma_commit();
}

// The descriptors of a tile: of queries and keys, whose rows are k, and of values, whose columns
// are those of the product.
__device__ __forceinline__ std::uint64_t operand_rows(const unsigned char* tile) {
  return operand_128(tile, 0, kSwizzleBytes);
}
__device__ __forceinline__ std::uint64_t operand_values(const unsigned char* tile) {
  return operand_128(tile, kBoxBytes, kSwizzleBytes);
}

}  // namespace sparsek
