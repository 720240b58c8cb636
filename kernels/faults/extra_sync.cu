// Slow on purpose, bsr_gemm_extra_sync: cp_async with EXTRA_SYNC needless barriers after each row
// of fragments, eight rows a step. Its numbers are right; the barrier stalls and the time show it.
#include "ring.cuh"

#ifndef KERNEL_NAME
#define KERNEL_NAME bsr_gemm_extra_sync
#endif
#ifndef EXTRA_SYNC
#define EXTRA_SYNC 2
#endif

struct Fault : ring::NoFault {
  static constexpr int kExtraBarriers = EXTRA_SYNC;
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
