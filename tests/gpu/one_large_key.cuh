// In place of kernels/attention/outliers.cuh, for heads of 512 keys: half of the queries give the
// last key a score far above all others. Its weight is 2^140 to 2^216 if the offset is that of other
// keys, which neither fp16 nor fp32 holds. No other score is large, so nothing else makes a kernel
// look for a larger offset.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "../common/cuda_check.cuh"

namespace sparsek {

// They only tell queries from keys.
constexpr int kOutlierQueries = 0;
constexpr int kOutlierKeys = 1;

constexpr int kLastKey = 511;
constexpr float kLargeKey = 60.0f;

// The first feature is 0, but for the last key and for queries 8 to 15 of every 16: 13 to 20. A
// product of 780 to 1,200, over sqrt(64) and in the exponent of 2, is 140 to 216.
template <typename T>
__global__ void set_first_features(T* __restrict__ rows, std::size_t count, int features,
                                   bool keys) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t row = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       row < count / features; row += stride) {
    float first = 0.0f;
    if (keys && row % (kLastKey + 1) == kLastKey) first = kLargeKey;
    if (!keys && row % 16 >= 8) first = static_cast<float>(13 + row % 8);
    rows[row * features] = static_cast<T>(first);
  }
}

template <typename T>
void scale_rows_async(T* rows, std::size_t count, int features, int which) {
  set_first_features<<<2048, 256>>>(rows, count, features, which == kOutlierKeys);
  SPARSEK_CUDA_CHECK(cudaGetLastError());
}

}  // namespace sparsek
