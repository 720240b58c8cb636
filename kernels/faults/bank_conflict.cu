// Slow on purpose, bsr_gemm_bank_conflict: cp_async without padding in shared memory, so that the
// rows of one matrix load fall into the same banks. Its numbers are right; more bank conflicts and
// more time show it. EXTRA_SYNC adds the needless barriers of extra_sync.cu, and KERNEL_NAME gives
// it another name.
#include "ring.cuh"

#ifndef KERNEL_NAME
#define KERNEL_NAME bsr_gemm_bank_conflict
#endif
#ifndef EXTRA_SYNC
#define EXTRA_SYNC 0
#endif

struct Fault : ring::NoFault {
  static constexpr int kPadding = 0;
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
