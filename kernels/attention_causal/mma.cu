// Rung 1, attention_causal_mma: mma.sync, whose layout of registers PTX defines, so that the
// softmax needs no shared memory: a warp has 16 queries, and the weights of a tile are the first
// operand of its second product as they are. Copies of the next tile run while one is multiplied.
// Tiles of keys after the queries are left out; the tile on the diagonal comes first and alone is
// masked, so that every row has a key in its first tile. Its time: docs/ladder.md.
//
// Thread block: 4 warps of 16 queries. Grid: x the tiles of 64 queries, y the heads.
// Shared memory (dynamic): Q 64 x 128 bf16, and a ring of 2 stages x (K and V 64 x 128 bf16);
//   16,384 + 2 x 32,768 = 81,920 bytes. The 16-byte parts of a row are swizzled by the row, so that
//   the 8 rows of a matrix are read from different banks.
// Barriers: one a tile for all threads. Before it, each thread waits for its own copies of this
//   tile; after it, everybody's are visible and every warp is done with the tile before, whose
//   stage is refilled next.
#include "../common/cp_async.cuh"
#include "../common/harness.cuh"
#include "../common/mbarrier.cuh"
#include "../common/mma.cuh"
#include "problem.cuh"
#include "rows.cuh"

namespace {

using sparsek::AttentionCausalOperands;
using sparsek::kFeatures;

constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;
constexpr int kRows = 16;  // of a warp
constexpr int kTile = 64;  // queries of a thread block, and keys of a tile
constexpr int kStages = 2;
constexpr int kVector = 8;  // bf16 elements in a 16-byte copy

constexpr int kRowBytes = kFeatures * static_cast<int>(sizeof(__nv_bfloat16));
constexpr int kTileBytes = kTile * kRowBytes;
constexpr int kStageBytes = 2 * kTileBytes;  // K, then V
constexpr int kSharedBytes = kTileBytes + kStages * kStageBytes;
constexpr int kRowVectors = kFeatures / kVector;

constexpr int kScoreSteps = kFeatures / 16;
constexpr int kOutSteps = kTile / 16;

static_assert(kWarps * kRows == kTile, "the diagonal is in one tile of keys");
static_assert(kTile * kRowVectors % kThreads == 0, "the copies divide evenly");

// Requests a tile into shared memory, each thread its share.
__device__ __forceinline__ void request(unsigned char* to, const __nv_bfloat16* from) {
#pragma unroll
  for (int i = 0; i < kTile * kRowVectors / kThreads; ++i) {
    const int vector = threadIdx.x + i * kThreads;
    const int row = vector / kRowVectors;
    const int place = vector % kRowVectors ^ row % 8;
    sparsek::cp_async_16(to + row * kRowBytes + place * 16, from + vector * kVector);
  }
}

}  // namespace

// 64 queries of one head.
extern "C" __global__ void __launch_bounds__(kThreads, 2)
    attention_causal_mma(const __nv_bfloat16* __restrict__ q, const __nv_bfloat16* __restrict__ k,
                         const __nv_bfloat16* __restrict__ v, __nv_bfloat16* __restrict__ out,
                         int sequence, int group) {
  extern __shared__ __align__(128) unsigned char shared[];
  unsigned char* const ring = shared + kTileBytes;
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int tiles = blockIdx.x + 1;
  const std::size_t first_row =
      static_cast<std::size_t>(blockIdx.y) * sequence + blockIdx.x * kTile;
  const std::size_t first_key = static_cast<std::size_t>(blockIdx.y / group) * sequence;

  // From the diagonal back to the first keys.
  const auto request_tile = [&](int turn) {
    if (turn < tiles) {
      unsigned char* const stage = ring + turn % kStages * kStageBytes;
      const std::size_t from = (first_key + (tiles - 1 - turn) * kTile) * kFeatures;
      request(stage, k + from);
      request(stage + kTileBytes, v + from);
    }
    sparsek::cp_async_commit();
  };
  request(shared, q + first_row * kFeatures);
  request_tile(0);

  // Of the address of a lane's row, what does not depend on the tile. All rows of a lane are equal
  // modulo 8, and so is their swizzle.
  const std::uint32_t base = sparsek::shared_address(shared);
  const int swizzle = lane % 8;
  const std::uint32_t row_q = base + (warp * kRows + lane % 16) * kRowBytes;
  const std::uint32_t row_k = (lane / 16 * 8 + lane % 8) * kRowBytes;
  const std::uint32_t row_v = (lane / 8 % 2 * 8 + lane % 8) * kRowBytes;

  std::uint32_t queries[kScoreSteps][4];
  float sums[kFeatures / 8][4] = {};
  sparsek::RunningSoftmax softmax;
  for (int turn = 0; turn < tiles; ++turn) {
    // Wait for this tile's copies.
    sparsek::cp_async_wait<0>();
    __syncthreads();
    request_tile(turn + 1);
    const std::uint32_t stage = base + kTileBytes + turn % kStages * kStageBytes;
    if (turn == 0) {
#pragma unroll
      for (int step = 0; step < kScoreSteps; ++step) {
        const int place = (2 * step + lane / 16) ^ swizzle;
        sparsek::ldmatrix_x4(queries[step], row_q + place * 16);
      }
    }

    // Scores.
    float scores[kTile / 2] = {};
    float(&score_tiles)[kTile / 8][4] = reinterpret_cast<float(&)[kTile / 8][4]>(scores);
#pragma unroll
    for (int step = 0; step < kScoreSteps; ++step) {
      const std::uint32_t place = ((2 * step + lane / 8 % 2) ^ swizzle) * 16;
#pragma unroll
      for (int j = 0; j < kTile / 16; ++j) {
        std::uint32_t keys[4];
        sparsek::ldmatrix_x4(keys, stage + row_k + place + j * 16 * kRowBytes);
        sparsek::mma_m16n8k16_bf16(score_tiles[2 * j], queries[step], keys[0], keys[1]);
        sparsek::mma_m16n8k16_bf16(score_tiles[2 * j + 1], queries[step], keys[2], keys[3]);
      }
    }

    // Softmax.
    if (turn == 0) sparsek::mask_above_diagonal(scores, warp * kRows + lane / 4);
    softmax.weigh(scores);
#pragma unroll
    for (int i = 0; i < kFeatures / 8; ++i) softmax.rescale(sums[i]);
    std::uint32_t weights[kOutSteps][4];
    sparsek::pack_weights(scores, weights);

    // Weights times values.
#pragma unroll
    for (int step = 0; step < kOutSteps; ++step) {
#pragma unroll
      for (int j = 0; j < kFeatures / 16; ++j) {
        const std::uint32_t place = ((2 * j + lane / 16) ^ swizzle) * 16;
        std::uint32_t values[4];
        sparsek::ldmatrix_x4_trans(values,
                                   stage + kTileBytes + row_v + place + step * 16 * kRowBytes);
        sparsek::mma_m16n8k16_bf16(sums[2 * j], weights[step], values[0], values[1]);
        sparsek::mma_m16n8k16_bf16(sums[2 * j + 1], weights[step], values[2], values[3]);
      }
    }
  }

  const std::size_t row = first_row + warp * kRows + lane / 4;
  sparsek::store_rows(out + row * kFeatures,
                      reinterpret_cast<const float(&)[kFeatures / 2]>(sums), softmax);
}

static void require(const sparsek::AttentionCausalShape& shape) {
  shape.require_sequence_of(kTile);
}

static void prepare() {
  SPARSEK_CUDA_CHECK(cudaFuncSetAttribute(
      attention_causal_mma, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
}

static void launch(const AttentionCausalOperands& p) {
  const dim3 grid(p.sequence / kTile, p.heads);
  attention_causal_mma<<<grid, kThreads, kSharedBytes>>>(p.q, p.k, p.v, p.out, p.sequence,
                                                         p.group);
}

int main(int argc, char** argv) {
  return sparsek::run<sparsek::AttentionCausal>(argc, argv,
                                                {"attention_causal_mma", require, prepare, launch});
}
