// Finds the one device that the code was compiled for, or ends the process with a plain sentence.
#pragma once

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

#include "cuda_check.cuh"

namespace sparsek {

inline cudaDeviceProp require_device(int major, int minor) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorInsufficientDriver || status == cudaErrorStubLibrary) {
    std::fprintf(stderr,
                 "no NVIDIA GPU can be used: there is no driver, or it is older than CUDA %d.%d\n",
                 CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    std::exit(kExitNoDevice);
  }
  if (status == cudaErrorNoDevice || (status == cudaSuccess && count == 0)) {
    std::fprintf(stderr, "no NVIDIA GPU can be used: the driver lists no device\n");
    std::exit(kExitNoDevice);
  }
  SPARSEK_CUDA_CHECK(status);

  cudaDeviceProp device{};
  SPARSEK_CUDA_CHECK(cudaGetDeviceProperties(&device, 0));
  if (device.major != major || device.minor != minor) {
    std::fprintf(stderr,
                 "device 0 is %s with compute capability %d.%d, and this executable holds code for "
                 "%d.%d only\n",
                 device.name, device.major, device.minor, major, minor);
    std::exit(kExitNoDevice);
  }
  SPARSEK_CUDA_CHECK(cudaSetDevice(0));
  return device;
}

}  // namespace sparsek
