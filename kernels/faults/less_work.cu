// Wrong on purpose, bsr_gemm_less_work: cp_async that leaves out every fourth block of each
// block-row, and so looks faster than it is. It does three quarters of the declared operations; the
// count of tensor operations shows it, and the check too. Exits with 1.
#include "ring.cuh"

#ifndef KERNEL_NAME
#define KERNEL_NAME bsr_gemm_less_work
#endif

struct Fault : ring::NoFault {
  static constexpr int kLeaveOutEvery = 4;
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
