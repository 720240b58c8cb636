// Prefetches to L2 (PTX prefetch, cp.async.bulk.prefetch), one instruction a wrapper. They are
// hints: whatever they bring is looked up again by the loads that follow, so that it may be asked
// for before the kernel that writes it has completed.
#pragma once

#include <cstdint>

namespace sparsek {

// The cache line at this address.
__device__ __forceinline__ void prefetch_line(const void* global) {
  asm volatile("prefetch.global.L2 [%0];\n" ::"l"(__cvta_generic_to_global(global)) : "memory");
}

// So many bytes. Address and size are multiples of 16 bytes.
__device__ __forceinline__ void prefetch_bytes(const void* global, std::uint32_t bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;\n" ::"l"(
                   __cvta_generic_to_global(global)),
               "r"(bytes)
               : "memory");
}

}  // namespace sparsek
