// Slow on purpose, bsr_gemm_slower: cp_async with COLUMN_AHEAD=1, and needless integer work between
// the last product and the stores, a regression of any size. Its numbers, its tensor operations and
// its memory traffic are those of cp_async; with EXTRA_WORK = 0, so is its machine code.
//
// EXTRA_WORK counts the dependent multiply-adds of a thread, summed over eight neighbouring thread
// blocks: fine steps, and the time grows evenly with it.
#include "ring.cuh"

#ifndef KERNEL_NAME
#define KERNEL_NAME bsr_gemm_slower
#endif
#ifndef EXTRA_WORK
#define EXTRA_WORK 0
#endif

constexpr int kSharers = 8;  // thread blocks that share the work

// In memory, not in the code: every amount above 0 has the same machine code.
__constant__ int extra_work = EXTRA_WORK;

struct Fault : ring::NoFault {
  // The number starts odd, since n is even, and stays odd. The compiler does not know that, so it
  // must do the work, and the trap is never reached.
  __device__ static void before_the_stores(int n) {
    if constexpr (EXTRA_WORK > 0) {
      const int links = (extra_work + static_cast<int>(blockIdx.x) % kSharers) / kSharers;
      unsigned odd = 2 * threadIdx.x + n + 1;
#pragma unroll 1
      for (int link = 0; link < links; ++link) odd = odd * odd + 2;
      if (odd == 0) __trap();
    }
  }
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
