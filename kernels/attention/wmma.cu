// Rung 2, attention_wmma: both products go to the tensor cores, and the copies of the next tile run
// while one is multiplied (cp.async). A warp owns 16 queries; their tile of Q comes through shared
// memory into fragments once. WMMA does not say which lane holds which element, so the softmax,
// which needs whole rows, takes the scores through shared memory; and the output, which stays in
// accumulators, is scaled by a fragment that was loaded with each row's factor in every column.
// What it gained: docs/kernels.md.
//
// Thread block: 4 warps of 16 queries. Grid: x the tiles of 64 queries, y the heads.
// Shared memory (dynamic): a ring of 2 stages x (K and V 64 x 72 fp16), Q 64 x 72 fp16; for each
//   warp the scores 16 x 72 fp32 and the weights 16 x 72 fp16; 73,728 bytes. 8 elements of padding
//   put the rows that are read together into different banks.
// Barriers: one a tile for all threads. Before it, each thread waits for its own copies of this
//   tile; after it, everybody's are visible and every warp is done with the tile before, whose
//   stage is refilled next. What a warp keeps for itself needs no more than __syncwarp.
#include <mma.h>

#include "../common/cp_async.cuh"
#include "../common/harness.cuh"
#include "problem.cuh"

namespace {

using namespace nvcuda;
using sparsek::AttentionOperands;
using sparsek::kFeatures;

constexpr int kFragment = 16;
constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;
constexpr int kQueries = kWarps * kFragment;
constexpr int kTileKeys = 64;
constexpr int kStages = 2;
constexpr int kVector = 8;  // fp16 elements in a 16-byte copy
constexpr float kScale = 0.125f * 1.44269504f;  // log2(e) / sqrt(D)

constexpr int kStride = kFeatures + 8;  // of Q, K, V and the weights in shared memory
constexpr int kScoreStride = kTileKeys + 8;
constexpr int kTileElements = kTileKeys * kStride;
constexpr int kStageElements = 2 * kTileElements;  // K, then V
constexpr int kQueryElements = kQueries * kStride;
constexpr int kScoreElements = kFragment * kScoreStride;
constexpr int kWeightElements = kFragment * kStride;
constexpr int kHalves = kStages * kStageElements + kQueryElements + kWarps * kWeightElements;
constexpr int kSharedBytes = kHalves * static_cast<int>(sizeof(__half)) +
                             kWarps * kScoreElements * static_cast<int>(sizeof(float));

constexpr int kProductsK = kFeatures / kFragment;
constexpr int kTilesN = kTileKeys / kFragment;
constexpr int kFeatureTiles = kFeatures / kFragment;
constexpr int kLanesPerRow = 32 / kFragment;  // in the softmax
constexpr int kScoresPerLane = kTileKeys / kLanesPerRow;

static_assert(kFeatures == 64, "kScale holds sqrt(64)");
static_assert(kTileKeys == kFeatures, "weights and scores share the rows' widths with features");
static_assert(kFeatures / kVector * kTileKeys % kThreads == 0, "the copies divide evenly");
static_assert(kFeatures / kVector * kQueries % kThreads == 0, "likewise for Q");

using FragmentA = wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major>;
using FragmentKeys = wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major>;
using FragmentValues = wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major>;
using Accumulator = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

// Requests `rows` rows into shared memory, each thread its share.
template <int kRows>
__device__ __forceinline__ void request(__half* to, const __half* from) {
#pragma unroll
  for (int i = 0; i < kRows * kFeatures / kVector / kThreads; ++i) {
    const int element = (threadIdx.x + i * kThreads) * kVector;
    sparsek::cp_async_16(to + element / kFeatures * kStride + element % kFeatures, from + element);
  }
}

}  // namespace

// 64 queries of one head.
extern "C" __global__ void __launch_bounds__(kThreads)
    attention_wmma(const __half* __restrict__ q, const __half* __restrict__ k,
                   const __half* __restrict__ v, __half* __restrict__ out, int sequence) {
  extern __shared__ __align__(128) unsigned char shared[];
  __half* const ring = reinterpret_cast<__half*>(shared);
  __half* const queries = ring + kStages * kStageElements;
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  __half* const weights = queries + kQueryElements + warp * kWeightElements;
  float* const scores = reinterpret_cast<float*>(queries + kQueryElements +
                                                 kWarps * kWeightElements) +
                        warp * kScoreElements;

  const std::size_t head = static_cast<std::size_t>(blockIdx.y) * sequence * kFeatures;
  const std::size_t tile_first = head + static_cast<std::size_t>(blockIdx.x) * kQueries * kFeatures;
  const int tiles = sequence / kTileKeys;

  const auto request_tile = [&](int tile) {
    if (tile < tiles) {
      __half* const stage = ring + tile % kStages * kStageElements;
      const std::size_t from = head + static_cast<std::size_t>(tile) * kTileKeys * kFeatures;
      request<kTileKeys>(stage, k + from);
      request<kTileKeys>(stage + kTileElements, v + from);
    }
    sparsek::cp_async_commit();
  };

  request<kQueries>(queries, q + tile_first);
  request_tile(0);

  FragmentA fragments_q[kProductsK];
  Accumulator sums[kFeatureTiles];
#pragma unroll
  for (int j = 0; j < kFeatureTiles; ++j) wmma::fill_fragment(sums[j], 0.0f);

  // In the softmax two lanes share a row, in turns of four columns.
  const int row = lane / kLanesPerRow;
  const int part = lane % kLanesPerRow;
  float top = -INFINITY;
  float weight_sum = 0;

  for (int tile = 0; tile < tiles; ++tile) {
    // Wait for this tile's copies.
    sparsek::cp_async_wait<0>();
    __syncthreads();
    request_tile(tile + 1);
    const __half* const tile_k = ring + tile % kStages * kStageElements;
    const __half* const tile_v = tile_k + kTileElements;

    if (tile == 0) {
#pragma unroll
      for (int i = 0; i < kProductsK; ++i) {
        wmma::load_matrix_sync(fragments_q[i], queries + warp * kFragment * kStride + i * kFragment,
                               kStride);
      }
    }

    // Scores.
#pragma unroll
    for (int j = 0; j < kTilesN; ++j) {
      Accumulator score;
      wmma::fill_fragment(score, 0.0f);
#pragma unroll
      for (int i = 0; i < kProductsK; ++i) {
        FragmentKeys keys;
        wmma::load_matrix_sync(keys, tile_k + j * kFragment * kStride + i * kFragment, kStride);
        wmma::mma_sync(score, fragments_q[i], keys, score);
      }
      wmma::store_matrix_sync(scores + j * kFragment, score, kScoreStride, wmma::mem_row_major);
    }
    __syncwarp();

    // Softmax.
    float4 own[kScoresPerLane / 4];
    float new_top = top;
#pragma unroll
    for (int i = 0; i < kScoresPerLane / 4; ++i) {
      own[i] = *reinterpret_cast<const float4*>(scores + row * kScoreStride +
                                                (i * kLanesPerRow + part) * 4);
      new_top = fmaxf(new_top, fmaxf(fmaxf(own[i].x, own[i].y), fmaxf(own[i].z, own[i].w)));
    }
    new_top = fmaxf(new_top, __shfl_xor_sync(0xFFFFFFFFu, new_top, 1));
    // The first tile has nothing to scale: its factor is exp2(-inf) = 0.
    const float factor = exp2f((top - new_top) * kScale);
    top = new_top;
    weight_sum *= factor;
#pragma unroll
    for (int i = 0; i < kScoresPerLane / 4; ++i) {
      const float x = exp2f((own[i].x - top) * kScale);
      const float y = exp2f((own[i].y - top) * kScale);
      const float z = exp2f((own[i].z - top) * kScale);
      const float w = exp2f((own[i].w - top) * kScale);
      weight_sum += (x + y) + (z + w);
      __half2* const to = reinterpret_cast<__half2*>(weights + row * kStride +
                                                     (i * kLanesPerRow + part) * 4);
      to[0] = __floats2half2_rn(x, y);
      to[1] = __floats2half2_rn(z, w);
    }
    // All scores are read: their first columns take the factors.
    __syncwarp();
    const float4 factors = make_float4(factor, factor, factor, factor);
#pragma unroll
    for (int i = 0; i < kFragment / kLanesPerRow / 4; ++i) {
      *reinterpret_cast<float4*>(scores + row * kScoreStride + (i * kLanesPerRow + part) * 4) =
          factors;
    }
    __syncwarp();
    Accumulator scaling;
    wmma::load_matrix_sync(scaling, scores, kScoreStride, wmma::mem_row_major);
#pragma unroll
    for (int j = 0; j < kFeatureTiles; ++j) {
#pragma unroll
      for (int e = 0; e < sums[j].num_elements; ++e) sums[j].x[e] *= scaling.x[e];
    }

    // Weights times values.
#pragma unroll
    for (int i = 0; i < kTilesN; ++i) {
      FragmentA fragment;
      wmma::load_matrix_sync(fragment, weights + i * kFragment, kStride);
#pragma unroll
      for (int j = 0; j < kFeatureTiles; ++j) {
        FragmentValues values;
        wmma::load_matrix_sync(values, tile_v + i * kFragment * kStride + j * kFragment, kStride);
        wmma::mma_sync(sums[j], fragment, values, sums[j]);
      }
    }
    __syncwarp();
  }

  // Epilogue: through the scores' place, so that a row leaves in vectors of 16 bytes.
#pragma unroll
  for (int j = 0; j < kFeatureTiles; ++j) {
    wmma::store_matrix_sync(scores + j * kFragment, sums[j], kScoreStride, wmma::mem_row_major);
  }
  __syncwarp();
  weight_sum += __shfl_xor_sync(0xFFFFFFFFu, weight_sum, 1);
  const float inverse = 1 / weight_sum;
  __half* const row_out =
      out + tile_first + static_cast<std::size_t>(warp * kFragment + row) * kFeatures;
#pragma unroll
  for (int i = 0; i < kFeatures / kVector / kLanesPerRow; ++i) {
    const int column = (i * kLanesPerRow + part) * kVector;
    const float* const from = scores + row * kScoreStride + column;
    alignas(16) __half2 pairs[kVector / 2];
#pragma unroll
    for (int j = 0; j < kVector / 2; ++j) {
      pairs[j] = __floats2half2_rn(from[2 * j] * inverse, from[2 * j + 1] * inverse);
    }
    *reinterpret_cast<uint4*>(row_out + column) = *reinterpret_cast<const uint4*>(pairs);
  }
}

static void require(const sparsek::AttentionShape& shape) {
  shape.require_sequence_of(kTileKeys);
}

static void prepare() {
  SPARSEK_CUDA_CHECK(cudaFuncSetAttribute(
      attention_wmma, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
}

static void launch(const AttentionOperands& p) {
  const dim3 grid(p.sequence / kQueries, p.heads);
  attention_wmma<<<grid, kThreads, kSharedBytes>>>(p.q, p.k, p.v, p.out, p.sequence);
}

int main(int argc, char** argv) {
  return sparsek::run<sparsek::Attention>(argc, argv, {"attention_wmma", require, prepare, launch});
}
