// The four lanes of a quad share a row of a tensor-core product's accumulators (mma.sync, WGMMA).
#pragma once

#include <cmath>
#include <cstdint>

namespace sparsek {

// 2^x; below 2^-126 it is 0.
__device__ __forceinline__ float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(y) : "f"(x));
  return y;
}

__device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xFFFFFFFFu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xFFFFFFFFu, x, 2));
}

__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(0xFFFFFFFFu, x, 1);
  return x + __shfl_xor_sync(0xFFFFFFFFu, x, 2);
}

// Of two neighbouring groups of 8 columns each lane has a pair: `left` and `right`. Two lanes
// exchange, so that the even one returns 4 columns of the left group, the odd one 4 of the right.
__device__ __forceinline__ float4 pair_exchange(const float* left, const float* right, bool odd) {
  const float x = __shfl_xor_sync(0xFFFFFFFFu, odd ? left[0] : right[0], 1);
  const float y = __shfl_xor_sync(0xFFFFFFFFu, odd ? left[1] : right[1], 1);
  return odd ? make_float4(x, y, right[0], right[1]) : make_float4(left[0], left[1], x, y);
}

// Transposes among the four lanes: word i of lane j becomes word j of lane i.
__device__ __forceinline__ void quad_transpose(std::uint32_t (&words)[4]) {
#pragma unroll
  for (int bit = 1; bit < 4; bit *= 2) {
    const bool upper = (threadIdx.x & bit) != 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if ((i & bit) != 0) continue;
      const std::uint32_t received =
          __shfl_xor_sync(0xFFFFFFFFu, upper ? words[i] : words[i | bit], bit);
      (upper ? words[i] : words[i | bit]) = received;
    }
  }
}

}  // namespace sparsek
