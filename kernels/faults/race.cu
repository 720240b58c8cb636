// Wrong on purpose, bsr_gemm_race: cp_async without the barrier of each step. A thread waits for
// its own copies and not for those of the others, and one warp is late with its share on purpose,
// so the other three multiply what the stage held before. The numbers change from run to run; exits
// with 1.
#include "ring.cuh"

#ifndef KERNEL_NAME
#define KERNEL_NAME bsr_gemm_race
#endif

struct Fault : ring::NoFault {
  static constexpr bool kStepBarrier = false;
  static constexpr unsigned kLateWarpNs = 2000;
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
