// Slow on purpose, bsr_gemm_uncoalesced: cp_async in which the lanes of a warp copy 16 bytes each
// from 32 rows of B, where they should copy two whole rows. Each request touches 32 sectors where
// 16 would do, and half of each sector is fetched for nothing. Its numbers are right; the sectors a
// request, the traffic between L1 and L2 and the time show it.
#include "ring.cuh"

#ifndef KERNEL_NAME
#define KERNEL_NAME bsr_gemm_uncoalesced
#endif

struct Fault : ring::NoFault {
  static constexpr bool kStridedB = true;
};

extern "C" __global__ void __launch_bounds__(ring::kThreads, ring::kMinBlocks)
    KERNEL_NAME(const __half* __restrict__ values, const int* __restrict__ columns,
                const int* __restrict__ row_offsets, const __half* __restrict__ b,
                float* __restrict__ c, int n) {
  ring::compute_tile<Fault>(values, columns, row_offsets, b, c, n);
}

int main(int argc, char** argv) {
  return ring::run<Fault, KERNEL_NAME>(argc, argv, RING_NAME(KERNEL_NAME));
}
