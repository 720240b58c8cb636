// Asynchronous copies that end at a barrier rather than in a group.
#pragma once

#include "cp_async.cuh"
#include "mbarrier.cuh"

namespace sparsek {

// Arrives at `barrier` for this thread as soon as all its copies so far have come: one of the
// arrivals that the barrier was initialized with.
__device__ __forceinline__ void cp_async_arrive(Barrier* barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];\n" ::"r"(
                   shared_address(barrier))
               : "memory");
}

}  // namespace sparsek
