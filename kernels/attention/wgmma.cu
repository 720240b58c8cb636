// Rung 3, attention_wgmma: the copies become bulk tensor copies and the products WGMMA, and the
// weights never leave registers: the scores that a thread holds are just what it needs of the first
// operand of the second product. All keys and values of a head fit in shared memory, so each warp
// group scores its keys in one go, and there is no running maximum and nothing to scale down. What
// it gained: docs/kernels.md.
//
// What bounds it: latencies in a row (the first copies, the exponentials, the merge), not the
// tensor cores, which are busy for 2,048 cycles of some 7,000 (2026-11-21). Hence
//   * two warp groups share a tile of queries, half of the keys each: half as long a chain, and
//     one's exponentials run beside the other's products;
//   * one tensor map for Q, K and V: its fetch comes before the first copy, and fetches of several
//     follow each other. With three the first keys came 2,900 cycles after the start, with one
//     1,800 (H200, 2026-11-21);
//   * every warp starts its own copies, what comes first before any barrier, and all keys ahead of
//     all values;
//   * maxima are taken while later keys still come, and the code is straight: the compiler lays a
//     tile's products between the next tile's exponentials.
//
// Thread block: 2 warp groups, the same 64 queries, KEYS / 2 keys each in tiles of 64.
// Grid: x the tiles of 64 queries, y the heads.
// Shared memory (dynamic): Q 64x64, K and V KEYS x 64 fp16 (128-byte swizzle); from each warp group
//   to the other 64 x 32 sums and 128 x 4 softmax values fp32. With 512 keys 8,192 + 131,072 +
//   20,480 bytes, the barriers, and up to 1,023 bytes to align.
// Barriers: full_q, and for each tile full_k and full_v, used once: 1 arrival (the thread that
//   starts the copy) and the bytes; whoever reads the tile waits. One for all threads at the start
//   (the barriers are there) and one at the end (what the warp groups give each other is there).
#include "../common/harness.cuh"
#include "../common/mbarrier.cuh"
#include "../common/mma.cuh"
#include "../common/quad.cuh"
#include "../common/tma.cuh"
#include "../common/wgmma.cuh"
#include "one_buffer.cuh"
#include "problem.cuh"

#ifndef KEYS
#define KEYS 512
#endif

namespace {

using sparsek::AttentionOperands;
using sparsek::Barrier;
using sparsek::kFeatures;
using sparsek::Major;

constexpr int kKeys = KEYS;  // of a head
constexpr int kWarpGroup = 128;
constexpr int kGroups = 2;
constexpr int kThreads = kGroups * kWarpGroup;
constexpr int kWarps = kThreads / 32;
constexpr int kQueries = 64;  // of a thread block, and rows of a product
constexpr int kProductK = 16;
constexpr int kTileKeys = 64;
constexpr int kTiles = kKeys / kTileKeys;
constexpr int kOwnTiles = kTiles / kGroups;     // of a warp group
constexpr float kScale = 0.125f * 1.44269504f;  // log2(e) / sqrt(D)

constexpr int kRowBytes = kFeatures * static_cast<int>(sizeof(__half));
constexpr int kTileBytes = kTileKeys * kRowBytes;
constexpr int kGroupBytes = 8 * kRowBytes;  // 8 rows of a tile, one period of the swizzle
constexpr int kScoreSteps = kFeatures / kProductK;
constexpr int kOutSteps = kTileKeys / kProductK;
constexpr int kScores = kTileKeys / 2;  // of a tile, in a thread
constexpr int kSums = kFeatures / 2;    // of the output, in a thread
constexpr int kKept = kSums / kGroups;  // of these, finished here; the others are given away
constexpr int kGivenVectors = kKept / 4;

constexpr int kAlignment = 1024;  // of a 128-byte swizzle
constexpr int kBarriers = 1 + 2 * kTiles;
constexpr int kSharedBytes = (1 + 2 * kTiles) * kTileBytes +
                             kThreads * (kGivenVectors + 1) * static_cast<int>(sizeof(float4)) +
                             kBarriers * static_cast<int>(sizeof(Barrier)) + kAlignment;

static_assert(kRowBytes == 128, "a row is as wide as the swizzle; kScale holds sqrt(64)");
static_assert(kQueries == kTileKeys, "one tensor map has the boxes of all copies");
static_assert(kKeys % (kGroups * kTileKeys) == 0, "the warp groups' keys are whole tiles");
static_assert(kTiles <= kWarps, "a warp starts the copies of one tile");
static_assert(kSharedBytes <= 227 * 1024, "all keys and values fit in shared memory");

__device__ __forceinline__ std::uint32_t pack(float x, float y) {
  const __half2 pair = __floats2half2_rn(x, y);
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}

}  // namespace

// 64 queries of one head. Where a thread has two rows, `half` is 0 for the upper, 1 for the lower.
extern "C" __global__ void __launch_bounds__(kThreads, 1)
    attention_wgmma(const __grid_constant__ CUtensorMap map, __half* __restrict__ out) {
  extern __shared__ unsigned char shared[];
  const std::uint32_t misaligned = sparsek::shared_address(shared) % kAlignment;
  unsigned char* const shared_q = shared + (kAlignment - misaligned) % kAlignment;
  unsigned char* const shared_k = shared_q + kTileBytes;
  unsigned char* const shared_v = shared_k + kTiles * kTileBytes;
  float4* const shared_sums = reinterpret_cast<float4*>(shared_v + kTiles * kTileBytes);
  float4* const shared_softmax = shared_sums + kThreads * kGivenVectors;
  Barrier* const full_q = reinterpret_cast<Barrier*>(shared_softmax + kThreads);
  Barrier* const full_k = full_q + 1;
  Barrier* const full_v = full_k + kTiles;

  // The same in all lanes, and known to be.
  const int warp = __shfl_sync(0xFFFFFFFFu, threadIdx.x / 32, 0);
  const int lane = threadIdx.x % 32;
  const int group = warp / 4;
  const int thread = threadIdx.x % kWarpGroup;
  const int head = blockIdx.y * kKeys;
  const int all = gridDim.y * kKeys;  // rows of Q, of K, of V
  const int first_query = head + blockIdx.x * kQueries;

  const auto load = [&](unsigned char* to, int row, Barrier* full) {
    sparsek::barrier_arrive_expect(full, kTileBytes);
    sparsek::tma_load(to, &map, row, 0, full);
  };
  const auto load_k = [&](int tile) {
    load(shared_k + tile * kTileBytes, all + head + tile * kTileKeys, full_k + tile);
  };
  const auto load_v = [&](int tile) {
    load(shared_v + tile * kTileBytes, 2 * all + head + tile * kTileKeys, full_v + tile);
  };
  // What both warp groups begin with waits for no other warp, nor for the values' barriers.
  if (threadIdx.x == 0) {
    for (int i = 0; i < 1 + kTiles; ++i) sparsek::barrier_init(full_q + i, 1);
    sparsek::barrier_init_fence();
    load(shared_q, first_query, full_q);
    load_k(0);
    load_k(kOwnTiles);
    for (int i = 0; i < kTiles; ++i) sparsek::barrier_init(full_v + i, 1);
    sparsek::barrier_init_fence();
  }
  __syncthreads();
  // In turns a tile of either warp group; the first two are on their way.
  const int tile_to_load = warp % kGroups * kOwnTiles + warp / kGroups;
  if (lane == 0 && warp >= kGroups && warp < kTiles) load_k(tile_to_load);
  __syncwarp();

  std::uint32_t queries[kScoreSteps][4];
  sparsek::barrier_wait(full_q, 0);
  // Only now, so that all keys come before the first values.
  if (lane == 0 && warp < kTiles) load_v(tile_to_load);
  __syncwarp();
  {
    const int row = warp % 4 * 16 + lane % 16;
#pragma unroll
    for (int k = 0; k < kScoreSteps; ++k) {
      sparsek::ldmatrix_x4(queries[k],
                           sparsek::shared_address(shared_q + row * kRowBytes +
                                                   ((2 * k + lane / 16) ^ row % 8) * 16));
    }
  }

  // Scores of all keys, and their maxima a tile behind.
  const int first_tile = group * kOwnTiles;
  const std::uint64_t operand_k =
      sparsek::operand_128(shared_k + first_tile * kTileBytes, 0, kGroupBytes);
  float scores[kOwnTiles][kScores];
  float top[2] = {-INFINITY, -INFINITY};
  const auto raise_top = [&](float (&tile)[kScores]) {
    sparsek::wgmma_settle(tile);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float largest[2] = {tile[half * 2], tile[half * 2 + 1]};
#pragma unroll
      for (int i = half * 2 + 4; i < kScores; i += 4) {
        largest[0] = fmaxf(largest[0], tile[i]);
        largest[1] = fmaxf(largest[1], tile[i + 1]);
      }
      top[half] = fmaxf(top[half], fmaxf(largest[0], largest[1]));
    }
  };
#pragma unroll
  for (int tile = 0; tile < kOwnTiles; ++tile) {
    sparsek::barrier_wait(full_k + first_tile + tile, 0);
    sparsek::wgmma_fence();
#pragma unroll
    for (int k = 0; k < kScoreSteps; ++k) {
      sparsek::wgmma_m64n64k16<Major::kK>(
          scores[tile], queries[k],
          sparsek::advance(operand_k, tile * kTileBytes + k * kProductK * 2), k > 0);
    }
    sparsek::wgmma_commit();
    if (tile > 0) {
      sparsek::wgmma_wait<1>();
      raise_top(scores[tile - 1]);
    }
  }
  sparsek::wgmma_wait<0>();
  raise_top(scores[kOwnTiles - 1]);

  float offset[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    top[half] = sparsek::quad_max(top[half]);
    offset[half] = top[half] * kScale;
  }

  // Weights, and their products with the values: a tile's products run beside the next one's
  // exponentials.
  const std::uint64_t operand_v =
      sparsek::operand_128(shared_v + first_tile * kTileBytes, 0, kGroupBytes);
  float sums[kSums];
  float weights[2] = {0, 0};
#pragma unroll
  for (int tile = 0; tile < kOwnTiles; ++tile) {
    std::uint32_t packed[kOutSteps][4];
#pragma unroll
    for (int k = 0; k < kOutSteps; ++k) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float* const pair = scores[tile] + k * 8 + i * 2;
        const float x = sparsek::exp2_approx(fmaf(pair[0], kScale, -offset[i % 2]));
        const float y = sparsek::exp2_approx(fmaf(pair[1], kScale, -offset[i % 2]));
        weights[i % 2] += x + y;
        packed[k][i] = pack(x, y);
      }
    }
    sparsek::barrier_wait(full_v + first_tile + tile, 0);
    sparsek::wgmma_fence();
#pragma unroll
    for (int k = 0; k < kOutSteps; ++k) {
      sparsek::wgmma_m64n64k16<Major::kColumns>(
          sums, packed[k],
          sparsek::advance(operand_v, tile * kTileBytes + k * kProductK * kRowBytes),
          tile > 0 || k > 0);
    }
    sparsek::wgmma_commit();
  }

  // Merge: a warp group finishes its upper or its lower rows, and gives the others away.
  const int other = 1 - group;
#pragma unroll
  for (int half = 0; half < 2; ++half) weights[half] = sparsek::quad_sum(weights[half]);
  shared_softmax[other * kWarpGroup + thread] =
      make_float4(top[0], top[1], weights[0], weights[1]);
  sparsek::wgmma_wait<0>();
  sparsek::wgmma_settle(sums);
  float kept[kKept];
#pragma unroll
  for (int i = 0; i < kGivenVectors; ++i) {
    float given[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int at = i * 8 + j / 2 * 4 + j % 2;
      kept[i * 4 + j] = group == 0 ? sums[at] : sums[at + 2];
      given[j] = group == 0 ? sums[at + 2] : sums[at];
    }
    shared_sums[(other * kGivenVectors + i) * kWarpGroup + thread] =
        make_float4(given[0], given[1], given[2], given[3]);
  }
  __syncthreads();
  const float4 softmax = shared_softmax[group * kWarpGroup + thread];
  const float own_top = group == 0 ? top[0] : top[1];
  const float other_top = group == 0 ? softmax.x : softmax.y;
  const float both = fmaxf(own_top, other_top);
  float own_factor = sparsek::exp2_approx((own_top - both) * kScale);
  float other_factor = sparsek::exp2_approx((other_top - both) * kScale);
  const float inverse = __fdividef(1.0f, (group == 0 ? weights[0] : weights[1]) * own_factor +
                                             (group == 0 ? softmax.z : softmax.w) * other_factor);
  own_factor *= inverse;
  other_factor *= inverse;

  std::uint32_t words[2][4];
#pragma unroll
  for (int i = 0; i < kGivenVectors; ++i) {
    const float4 given = shared_sums[(group * kGivenVectors + i) * kWarpGroup + thread];
    const float merged[] = {
        fmaf(kept[i * 4], own_factor, given.x * other_factor),
        fmaf(kept[i * 4 + 1], own_factor, given.y * other_factor),
        fmaf(kept[i * 4 + 2], own_factor, given.z * other_factor),
        fmaf(kept[i * 4 + 3], own_factor, given.w * other_factor),
    };
    words[i / 2][i % 2 * 2] = pack(merged[0], merged[1]);
    words[i / 2][i % 2 * 2 + 1] = pack(merged[2], merged[3]);
  }
  const int row = first_query + warp % 4 * 16 + group * 8 + lane / 4;
  __half* const row_out = out + static_cast<std::size_t>(row) * kFeatures + lane % 4 * 8;
#pragma unroll
  for (int side = 0; side < 2; ++side) {
    sparsek::quad_transpose(words[side]);
    *reinterpret_cast<uint4*>(row_out + side * kFeatures / 2) =
        make_uint4(words[side][0], words[side][1], words[side][2], words[side][3]);
  }
}

static void require(const sparsek::AttentionShape& shape) { sparsek::require_keys(shape, kKeys); }

static void prepare() {
  SPARSEK_CUDA_CHECK(cudaFuncSetAttribute(
      attention_wgmma, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
}

static void launch(const AttentionOperands& p) {
  const CUtensorMap map = sparsek::one_buffer_map(p, kKeys, kTileKeys);
  const dim3 grid(kKeys / kQueries, p.heads);
  attention_wgmma<<<grid, kThreads, kSharedBytes>>>(map, p.out);
}

int main(int argc, char** argv) {
  return sparsek::run<sparsek::Attention>(argc, argv,
                                          {"attention_wgmma", require, prepare, launch});
}
