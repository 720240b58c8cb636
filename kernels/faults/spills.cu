// Slow on purpose, bsr_gemm_spills: cp_async promised MIN_BLOCKS = 4 thread blocks on a
// multiprocessor, which leaves a thread 128 registers. Its accumulators alone need them all, so the
// inner loop keeps values in local memory. Its numbers are right; the report of ptxas, the local
// loads and stores and the time show it.
#include "ring.cuh"

#ifndef KERNEL_NAME
#define KERNEL_NAME bsr_gemm_spills
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 4
#endif

struct Fault : ring::NoFault {};

extern "C" __global__ void __launch_bounds__(ring::kThreads, MIN_BLOCKS)
    KERNEL_NAME(const __half* __restrict__ values, const int* __restrict__ columns,
                const int* __restrict__ row_offsets, const __half* __restrict__ b,
                float* __restrict__ c, int n) {
  ring::compute_tile<Fault>(values, columns, row_offsets, b, c, n);
}

int main(int argc, char** argv) {
  return ring::run<Fault, KERNEL_NAME>(argc, argv, RING_NAME(KERNEL_NAME));
}
