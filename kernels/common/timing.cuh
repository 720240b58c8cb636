// Device-side times of single launches.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <vector>

#include "cuda_check.cuh"

namespace sparsek {

// One pair of events around each launch. Everything is queued without waiting, so that from the
// second launch on the host runs ahead and its launch overhead stays out of the interval.
// L2 state: as the launch before left it.
template <typename Launch>
std::vector<double> time_launches_us(std::int64_t warmup, std::int64_t launches, Launch&& launch) {
  std::vector<cudaEvent_t> starts(launches), stops(launches);
  for (std::int64_t i = 0; i < launches; ++i) {
    SPARSEK_CUDA_CHECK(cudaEventCreate(&starts[i]));
    SPARSEK_CUDA_CHECK(cudaEventCreate(&stops[i]));
  }
  for (std::int64_t i = 0; i < warmup; ++i) launch();
  for (std::int64_t i = 0; i < launches; ++i) {
    SPARSEK_CUDA_CHECK(cudaEventRecord(starts[i]));
    launch();
    SPARSEK_CUDA_CHECK(cudaEventRecord(stops[i]));
  }
  SPARSEK_CUDA_CHECK(cudaDeviceSynchronize());

  std::vector<double> times_us;
  for (std::int64_t i = 0; i < launches; ++i) {
    float milliseconds = 0;
    SPARSEK_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, starts[i], stops[i]));
    SPARSEK_CUDA_CHECK(cudaEventDestroy(starts[i]));
    SPARSEK_CUDA_CHECK(cudaEventDestroy(stops[i]));
    times_us.push_back(milliseconds * 1e3);
  }
  return times_us;
}

}  // namespace sparsek
