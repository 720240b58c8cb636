// Rung 1, attention_scalar: no tensor cores, and no matrix of scores. A thread owns a query: its
// features and its output stay in registers, while keys and values pass by in shared memory and the
// softmax runs along (a running maximum; what was summed under an older one is scaled down). Its
// time: docs/kernels.md.
//
// Thread block: 64 threads, a query each. Grid: x the tiles of 64 queries, y the heads.
// Shared memory (static): K and V 32 x 64 fp32 each, 16,384 bytes. All threads read the same key at
//   the same time: a broadcast, four features a load.
// Barriers: two a tile for all threads, around the copy: the tile before has been read, this one is
//   there.
#include "../common/harness.cuh"
#include "problem.cuh"

namespace {

using sparsek::AttentionOperands;
using sparsek::kFeatures;

constexpr int kQueries = 64;
constexpr int kThreads = kQueries;
constexpr int kTileKeys = 32;
constexpr int kGroupKeys = 16;  // scored together, so that the output is scaled once for them
constexpr int kVector = 8;      // fp16 elements in a 16-byte load
constexpr int kVectors = kTileKeys * kFeatures / kVector / kThreads;
constexpr float kScale = 0.125f * 1.44269504f;  // log2(e) / sqrt(D)

static_assert(kFeatures == 64, "kScale holds sqrt(64)");
static_assert(kVectors * kVector * kThreads == kTileKeys * kFeatures,
              "no thread has a part of a vector");
static_assert(kTileKeys % kGroupKeys == 0, "a tile is whole groups");

struct alignas(16) Vector {
  __half2 pairs[kVector / 2];
};

__device__ __forceinline__ Vector load(const __half* from) {
  return *reinterpret_cast<const Vector*>(from);
}

__device__ __forceinline__ void widen(const Vector& vector, float* to) {
#pragma unroll
  for (int i = 0; i < kVector / 2; ++i) {
    const float2 pair = __half22float2(vector.pairs[i]);
    to[2 * i] = pair.x;
    to[2 * i + 1] = pair.y;
  }
}

}  // namespace

// 64 queries of one head.
extern "C" __global__ void __launch_bounds__(kThreads)
    attention_scalar(const __half* __restrict__ q, const __half* __restrict__ k,
                     const __half* __restrict__ v, __half* __restrict__ out, int sequence) {
  __shared__ __align__(16) float tile_k[kTileKeys][kFeatures];
  __shared__ __align__(16) float tile_v[kTileKeys][kFeatures];

  const int thread = threadIdx.x;
  const std::size_t head = static_cast<std::size_t>(blockIdx.y) * sequence * kFeatures;
  const std::size_t own =
      head + static_cast<std::size_t>(blockIdx.x * kQueries + thread) * kFeatures;

  float query[kFeatures];
  float sums[kFeatures];
#pragma unroll
  for (int i = 0; i < kFeatures; i += kVector) widen(load(q + own + i), query + i);
#pragma unroll
  for (int i = 0; i < kFeatures; ++i) sums[i] = 0;
  float top = -INFINITY;
  float weights = 0;

  for (int first = 0; first < sequence; first += kTileKeys) {
    const std::size_t from = head + static_cast<std::size_t>(first) * kFeatures;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      const int element = (thread + i * kThreads) * kVector;
      widen(load(k + from + element), &tile_k[0][0] + element);
      widen(load(v + from + element), &tile_v[0][0] + element);
    }
    __syncthreads();

#pragma unroll 1
    for (int group = 0; group < kTileKeys; group += kGroupKeys) {
      float scores[kGroupKeys];
      float group_top = top;
#pragma unroll
      for (int j = 0; j < kGroupKeys; ++j) {
        float4 parts = make_float4(0, 0, 0, 0);
#pragma unroll
        for (int i = 0; i < kFeatures; i += 4) {
          const float4 key = *reinterpret_cast<const float4*>(&tile_k[group + j][i]);
          parts.x = fmaf(query[i], key.x, parts.x);
          parts.y = fmaf(query[i + 1], key.y, parts.y);
          parts.z = fmaf(query[i + 2], key.z, parts.z);
          parts.w = fmaf(query[i + 3], key.w, parts.w);
        }
        scores[j] = (parts.x + parts.y) + (parts.z + parts.w);
        group_top = fmaxf(group_top, scores[j]);
      }

      // The first group has nothing to scale: its factor is exp2(-inf) = 0.
      const float factor = exp2f((top - group_top) * kScale);
      top = group_top;
      weights *= factor;
#pragma unroll
      for (int i = 0; i < kFeatures; ++i) sums[i] *= factor;

#pragma unroll
      for (int j = 0; j < kGroupKeys; ++j) {
        const float weight = exp2f((scores[j] - top) * kScale);
        weights += weight;
#pragma unroll
        for (int i = 0; i < kFeatures; i += 4) {
          const float4 value = *reinterpret_cast<const float4*>(&tile_v[group + j][i]);
          sums[i] = fmaf(weight, value.x, sums[i]);
          sums[i + 1] = fmaf(weight, value.y, sums[i + 1]);
          sums[i + 2] = fmaf(weight, value.z, sums[i + 2]);
          sums[i + 3] = fmaf(weight, value.w, sums[i + 3]);
        }
      }
    }
  }

  const float inverse = 1 / weights;
#pragma unroll
  for (int i = 0; i < kFeatures; i += kVector) {
    Vector vector;
#pragma unroll
    for (int j = 0; j < kVector / 2; ++j) {
      vector.pairs[j] =
          __floats2half2_rn(sums[i + 2 * j] * inverse, sums[i + 2 * j + 1] * inverse);
    }
    *reinterpret_cast<Vector*>(out + own + i) = vector;
  }
}

static void require(const sparsek::AttentionShape& shape) { shape.require_sequence_of(kQueries); }

static void launch(const AttentionOperands& p) {
  const dim3 grid(p.sequence / kQueries, p.heads);
  attention_scalar<<<grid, kThreads>>>(p.q, p.k, p.v, p.out, p.sequence);
}

int main(int argc, char** argv) {
  return sparsek::run<sparsek::Attention>(argc, argv,
                                          {"attention_scalar", require, nullptr, launch});
}
