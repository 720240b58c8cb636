// Programmatic dependent launch (PTX griddepcontrol), one instruction a wrapper: a kernel may start
// while the one before it in the stream still runs, so that its launch, and what it does before it
// waits, hide behind the other's last thread blocks.
//
// Right for whatever the kernel before writes or still reads, if every thread waits before its
// first access of global memory: the wait ends when that kernel has completed and its writes are
// visible. Having waited itself, it completed after all before it. A kernel that was launched the
// ordinary way has nothing to wait for. A prefetch to L2 is no access (prefetch.cuh).
//
// Read-only loads (ld.global.nc, __ldg, or const with __restrict__) are for data that nobody
// writes while the kernel runs, and it runs from before its wait: a compiler may move them up, and
// they need not see the writes. Kernels launched so use plain loads.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "cuda_check.cuh"

namespace sparsek {

// Lets the next kernel start once all thread blocks of this one have said so or ended, where they
// leave it room. It promises nothing about memory, and so may come first.
__device__ __forceinline__ void launch_dependents() {
  asm volatile("griddepcontrol.launch_dependents;\n" ::: "memory");
}

// Waits until the kernel before has completed.
__device__ __forceinline__ void wait_for_prerequisites() {
  asm volatile("griddepcontrol.wait;\n" ::: "memory");
}

// Of this program, on the host: ci/peers also times the same kernels without it.
struct DependentLaunches {
  bool allowed = true;
  bool used = false;  // a kernel was launched by launch_dependent
};
inline DependentLaunches dependent_launches;

// kernel<<<blocks, threads, shared_bytes>>>(arguments...) that need not wait for the kernel before.
template <typename... Parameters, typename... Arguments>
void launch_dependent(void (*kernel)(Parameters...), unsigned blocks, unsigned threads,
                      std::size_t shared_bytes, Arguments... arguments) {
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  // No stream is the default stream, as for <<<>>>: legacy or per thread, as nvcc was told.
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.attrs = &early;
  config.numAttrs = dependent_launches.allowed ? 1 : 0;
  dependent_launches.used = true;
  SPARSEK_CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...));
}

}  // namespace sparsek
