// The softmax and the output of rows in the accumulators of a tensor-core product, whose layout is
// the same for mma.sync and WGMMA: the four lanes of a quad share an upper row and a lower one, 8
// below. Of each 8 columns lane q of the quad has the pair 2q: x[4i], x[4i + 1] of the upper row,
// x[4i + 2], x[4i + 3] of the lower. `half` is 0 for the upper row, 1 for the lower.
#pragma once

#include <cuda_bf16.h>

#include <cmath>
#include <cstdint>

#include "../common/quad.cuh"
#include "reference.cuh"

namespace sparsek {

constexpr float kScale = 0.08838834764f * 1.44269504f;  // log2(e) / sqrt(D)
static_assert(kFeatures == 128, "kScale has sqrt(128)");

__device__ __forceinline__ std::uint32_t pack(float x, float y) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(x, y);
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}

// Scores of keys after the query become -inf. `row` is the upper row's place in the tile, where the
// diagonal begins at (0, 0).
template <int Count>
__device__ __forceinline__ void mask_above_diagonal(float (&scores)[Count], int row) {
  const int column = threadIdx.x % 4 * 2;
#pragma unroll
  for (int i = 0; i < Count; ++i) {
    if (i / 4 * 8 + column + i % 2 > row + i / 2 % 2 * 8) scores[i] = -INFINITY;
  }
}

// The softmax of a thread's two rows while tiles of keys go by. In the first tile every row needs a
// key that is not masked.
struct RunningSoftmax {
  float top[2] = {-INFINITY, -INFINITY};
  float weight_sum[2] = {0, 0};  // of this thread's columns
  float factor[2];               // of what was summed before the last tile

  // Turns the scores of a tile into weights.
  template <int Count>
  __device__ __forceinline__ void weigh(float (&scores)[Count]) {
    float offset[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float largest[2] = {scores[half * 2], scores[half * 2 + 1]};
#pragma unroll
      for (int i = half * 2 + 4; i < Count; i += 4) {
        largest[0] = fmaxf(largest[0], scores[i]);
        largest[1] = fmaxf(largest[1], scores[i + 1]);
      }
      const float new_top = fmaxf(top[half], quad_max(fmaxf(largest[0], largest[1])));
      // The first tile has nothing to scale: its factor is 2^-inf = 0.
      factor[half] = exp2_approx((top[half] - new_top) * kScale);
      top[half] = new_top;
      offset[half] = new_top * kScale;
      weight_sum[half] *= factor[half];
    }
    float sums[2][2] = {};
#pragma unroll
    for (int i = 0; i < Count; ++i) {
      const int half = i / 2 % 2;
      scores[i] = exp2_approx(fmaf(scores[i], kScale, -offset[half]));
      sums[half][i % 2] += scores[i];
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) weight_sum[half] += sums[half][0] + sums[half][1];
  }

  // Scales what was summed before the last tile.
  template <int Count>
  __device__ __forceinline__ void rescale(float (&sums)[Count]) const {
#pragma unroll
    for (int i = 0; i < Count; ++i) sums[i] *= factor[i / 2 % 2];
  }
};

// The weights of 16 keys as the first operand of a product.
template <int Count>
__device__ __forceinline__ void pack_weights(const float (&weights)[Count],
                                             std::uint32_t (&packed)[Count / 8][4]) {
#pragma unroll
  for (int i = 0; i < Count / 2; ++i) {
    packed[i / 4][i % 4] = pack(weights[2 * i], weights[2 * i + 1]);
  }
}

// Divides two rows of the output by the sums of their weights and stores them; `out` is the upper
// row. The lanes of a quad exchange columns, so that each stores 16 bytes and the quad whole
// sectors.
__device__ __forceinline__ void store_rows(__nv_bfloat16* out, const float (&sums)[kFeatures / 2],
                                           const RunningSoftmax& softmax) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float inverse = 1 / quad_sum(softmax.weight_sum[half]);
    __nv_bfloat16* const to = out + half * 8 * kFeatures + threadIdx.x % 4 * 8;
#pragma unroll
    for (int part = 0; part < kFeatures / 32; ++part) {
      std::uint32_t words[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int at = (part * 4 + i) * 4 + half * 2;
        words[i] = pack(sums[at] * inverse, sums[at + 1] * inverse);
      }
      quad_transpose(words);
      *reinterpret_cast<uint4*>(to + part * 32) =
          make_uint4(words[0], words[1], words[2], words[3]);
    }
  }
}

}  // namespace sparsek
