// In place of kernels/attention/outliers.cuh: the values of the keys that are far larger are 0. Where
// one of these has nearly all of the weight, the output is that of weights far below 1, down to those
// that fp32 does not hold.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "../common/cuda_check.cuh"

namespace sparsek {

constexpr float kOutlier = 16.0f;
constexpr int kOutlierQueries = 7;
constexpr int kOutlierKeys = 19;

// The values follow the keys, and are as many.
template <typename T>
__global__ void scale_rows(T* __restrict__ rows, std::size_t count, int features, int step) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    if (i / features % step != step - 1) continue;
    rows[i] = static_cast<T>(static_cast<float>(rows[i]) * kOutlier);
    if (step == kOutlierKeys) rows[count + i] = static_cast<T>(0.0f);
  }
}

template <typename T>
void scale_rows_async(T* rows, std::size_t count, int features, int step) {
  scale_rows<<<2048, 256>>>(rows, count, features, step);
  SPARSEK_CUDA_CHECK(cudaGetLastError());
}

}  // namespace sparsek
