// The independent reference: thread blocks of 16 queries, in double, no tensor cores; and how far a
// kernel may be from it. The scores are computed once for all features of a query: once for each
// element, as in kernels/attention, would be 128 times the work. So the expected values are in
// memory before they are compared.
//
// The bound is the one that kernels/attention/reference.cuh derives, with two differences:
//   * Weights and output are rounded to bf16, which has 8 significant bits: 2^-8 in place of 2^-11.
//     bf16 reaches as far down as fp32: below 2^-126 a weight, what scales it, its product with a
//     value or the output may be 0. At most 2^-124 * (1 + |v|) for each key are lost so. It counts
//     where the key with nearly all of the weight has the value 0.
//   * The keys of query i are the first i + 1. Masked keys have the weight 0 and add no rounding.
#pragma once

#include <cuda_bf16.h>

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "../common/compare.cuh"

namespace sparsek {

constexpr int kFeatures = 128;  // D

// What a kernel is launched on; all pointers are device pointers. Query head h reads key/value head
// h / group, over the whole batch.
struct AttentionCausalOperands {
  // [heads][sequence][kFeatures]; k follows it, and v follows k: one buffer
  const __nv_bfloat16* q;
  const __nv_bfloat16* k;  // [heads / group][sequence][kFeatures]
  const __nv_bfloat16* v;
  __nv_bfloat16* out;
  int heads;  // query heads of the whole batch
  int group;  // query heads of a key/value head
  int sequence;
};

constexpr const char* kAttentionCausalTolerance =
    "to first order in each rounding of scores, weights (bf16), sums and output (bf16), for each "
    "element: mostly 2^-8 * (sum|p*v| + |out|)";

constexpr int kReferenceTile = 16;  // queries of a thread block, and keys at a time
constexpr int kReferenceThreads = kReferenceTile * kReferenceTile;

// Among the 16 lanes that share a query.
__device__ inline double reference_sum(double x) {
  for (int lanes = 1; lanes < kReferenceTile; lanes *= 2) x += __shfl_xor_sync(~0u, x, lanes);
  return x;
}

__device__ inline double reference_max(double x) {
  for (int lanes = 1; lanes < kReferenceTile; lanes *= 2) {
    x = fmax(x, __shfl_xor_sync(~0u, x, lanes));
  }
  return x;
}

// Grid: x the tiles of 16 queries, y the heads. A thread takes a query and a key for the scores,
// and a feature of 8 queries for the sums.
__global__ void __launch_bounds__(kReferenceThreads)
    reference_rows(AttentionCausalOperands p, Expected* __restrict__ expected) {
  constexpr int kTile = kReferenceTile;
  constexpr int kStride = kFeatures + 1;  // the 16 keys of a load lie in different banks
  constexpr int kOwnQueries = kTile * kFeatures / kReferenceThreads;
  __shared__ double queries[kTile][kStride];
  __shared__ double rows[kTile][kStride];  // keys, then values
  __shared__ double weights[kTile][kTile];
  __shared__ double weight_errors[kTile][kTile];  // weight times the error of its own
  __shared__ double factors[kTile];
  __shared__ double alls[kTile], errors[kTile], tops[kTile];

  const double scale = 1 / sqrt(static_cast<double>(kFeatures));
  const int thread = threadIdx.x;
  const int query = thread / kTile;
  const int key = thread % kTile;
  const int feature = thread % kFeatures;
  const int first_own = thread / kFeatures * kOwnQueries;
  const std::size_t first_row =
      static_cast<std::size_t>(blockIdx.y) * p.sequence + blockIdx.x * kTile;
  const std::size_t first_key = static_cast<std::size_t>(blockIdx.y / p.group) * p.sequence;
  const auto load = [&](double(&to)[kTile][kStride], const __nv_bfloat16* from) {
    for (int i = thread; i < kTile * kFeatures; i += kReferenceThreads) {
      to[i / kFeatures][i % kFeatures] = __bfloat162float(from[i]);
    }
  };

  double top = -INFINITY, all = 0, error = 0;  // of this thread's query
  double sum[kOwnQueries] = {}, magnitude[kOwnQueries] = {}, error_magnitude[kOwnQueries] = {};
  double values = 0;  // sum of |v|; on the diagonal also of keys that are masked
  load(queries, p.q + first_row * kFeatures);
  for (int tile = 0; tile <= static_cast<int>(blockIdx.x); ++tile) {
    const std::size_t from = (first_key + static_cast<std::size_t>(tile) * kTile) * kFeatures;
    __syncthreads();
    load(rows, p.k + from);
    __syncthreads();

    double score = 0, a = 0;
    for (int i = 0; i < kFeatures; ++i) {
      const double product = queries[query][i] * rows[key][i];
      score += product;
      a += fabs(product);
    }
    const bool masked = tile == static_cast<int>(blockIdx.x) && key > query;
    const double new_top = fmax(top, reference_max(masked ? -INFINITY : score));
    // The first tile has nothing to scale: its factor is exp(-inf) = 0.
    const double factor = exp((top - new_top) * scale);
    top = new_top;
    const double weight = masked ? 0.0 : exp((score - top) * scale);
    const double d = scale * (kFeatures * 0x1p-23 * a + 0x1p-22 * fabs(score));
    const double weight_error = weight * (d + d * d);
    all = all * factor + reference_sum(weight);
    error = error * factor + reference_sum(weight_error);
    weights[query][key] = weight;
    weight_errors[query][key] = weight_error;
    if (key == 0) factors[query] = factor;

    __syncthreads();
    load(rows, p.v + from);
    __syncthreads();
    for (int i = 0; i < kOwnQueries; ++i) {
      const int own = first_own + i;
      sum[i] *= factors[own];
      magnitude[i] *= factors[own];
      error_magnitude[i] *= factors[own];
    }
    for (int j = 0; j < kTile; ++j) {
      const double v = rows[j][feature];
      values += fabs(v);
#pragma unroll
      for (int i = 0; i < kOwnQueries; ++i) {
        sum[i] += weights[first_own + i][j] * v;
        magnitude[i] += weights[first_own + i][j] * fabs(v);
        error_magnitude[i] += weight_errors[first_own + i][j] * fabs(v);
      }
    }
  }

  if (key == 0) {
    alls[query] = all;
    errors[query] = error;
    tops[query] = top;
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kOwnQueries; ++i) {
    const int own = first_own + i;
    const int keys = blockIdx.x * kTile + own + 1;
    const double out = sum[i] / alls[own];
    const double spread = magnitude[i] / alls[own];  // sum p |v|
    const double every = (keys / 16 + 2) * 0x1p-21 + 0x1p-22 * fabs(tops[own]) * scale;
    const double weight_sum = errors[own] / alls[own] + every;  // sum p e
    const double moved = (error_magnitude[i] / alls[own] + every * spread +
                          fabs(out) * weight_sum) / (1 - weight_sum);
    const double rounded = 0x1p-8 * spread;
    const double sums = keys * 0x1p-23 * (spread + fabs(out));
    const double last = 0x1p-21 * spread + 0x1p-8 * fabs(out);
    const double lost = 0x1p-124 * (keys + values) / alls[own];
    expected[(first_row + own) * kFeatures + feature] = {
        out, 1.01 * (moved + rounded + sums + last + lost)};
  }
}

struct AttentionCausalReference {
  const __nv_bfloat16* out;
  const Expected* rows;  // as reference_rows left them

  __device__ double got(std::uint64_t index) const { return __bfloat162float(out[index]); }
  __device__ Expected expected(std::uint64_t index) const { return rows[index]; }
};

}  // namespace sparsek
