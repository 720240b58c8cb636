// Some queries and keys far larger than the others: what a softmax without a maximum overflows on,
// and one whose running maximum is not applied everywhere gets wrong.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "../common/cuda_check.cuh"

namespace sparsek {

// A power of two, exact in every format. Both outliers together: scores 256 times as large.
constexpr float kOutlier = 16.0f;

// Every `step`-th row is an outlier. The two steps have no common divisor with a tile, so that
// every place in a tile comes to be one.
constexpr int kOutlierQueries = 7;
constexpr int kOutlierKeys = 19;

template <typename T>
__global__ void scale_rows(T* __restrict__ rows, std::size_t count, int features, int step) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    if (i / features % step == step - 1) {
      rows[i] = static_cast<T>(static_cast<float>(rows[i]) * kOutlier);
    }
  }
}

// Of `count` elements of queries or keys.
template <typename T>
void scale_rows_async(T* rows, std::size_t count, int features, int step) {
  scale_rows<<<2048, 256>>>(rows, count, features, step);
  SPARSEK_CUDA_CHECK(cudaGetLastError());
}

}  // namespace sparsek
