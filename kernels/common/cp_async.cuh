// Asynchronous copies from global to shared memory (PTX cp.async), one instruction a wrapper.
#pragma once

#include <cstdint>

namespace sparsek {

// 16 bytes, both addresses 16-byte aligned; .cg goes past L1.
__device__ __forceinline__ void cp_async_16(void* shared, const void* global) {
  const auto target = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(target), "l"(global) : "memory");
}

// Closes the group of this thread's copies since the last commit; the group may be empty.
__device__ __forceinline__ void cp_async_commit() {
  asm volatile("cp.async.commit_group;\n" ::: "memory");
}

// Waits until at most Pending of this thread's latest groups are still under way. The other
// threads' copies need a barrier after it.
template <int Pending>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(Pending) : "memory");
}

}  // namespace sparsek
