// Bulk copies of contiguous bytes (PTX cp.async.bulk), one instruction a wrapper. Addresses and
// sizes are multiples of 16 bytes. Stores are grouped and fenced as in tma.cuh.
#pragma once

#include <cstdint>

#include "mbarrier.cuh"
#include "tma.cuh"

namespace sparsek {

// Copies into shared memory; the bytes count towards `barrier`.
__device__ __forceinline__ void bulk_load(void* shared, const void* global, std::uint32_t bytes,
                                          Barrier* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];\n" ::
          "r"(shared_address(shared)),
      "l"(__cvta_generic_to_global(global)), "r"(bytes), "r"(shared_address(barrier))
      : "memory");
}

// Copies out of shared memory, as part of this thread's open group.
__device__ __forceinline__ void bulk_store(void* global, const void* shared, std::uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n" ::"l"(
                   __cvta_generic_to_global(global)),
               "r"(shared_address(shared)), "r"(bytes)
               : "memory");
}

}  // namespace sparsek
