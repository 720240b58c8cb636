// Every CUDA call goes through SPARSEK_CUDA_CHECK: a failure names its place and ends the process.
#pragma once

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

#include "exit_status.cuh"

namespace sparsek {

inline void check_cuda(cudaError_t status, const char* call, const char* file, int line) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s:%d: %s: %s (%s)\n", file, line, call, cudaGetErrorString(status),
               cudaGetErrorName(status));
  // A faulted context cannot be torn down in order: leave without running destructors.
  std::fflush(nullptr);
  std::_Exit(kExitCudaError);
}

}  // namespace sparsek

#define SPARSEK_CUDA_CHECK(call) ::sparsek::check_cuda((call), #call, __FILE__, __LINE__)
