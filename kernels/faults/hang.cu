// Wrong on purpose, bsr_gemm_hang: the baseline behind a flag that nobody sets, as a consumer waits
// for an arrival that was never made. Runs until it is killed; SIGKILL ends it.
#define BSR_GEMM_BODY_ONLY
#include "../bsr_gemm/baseline.cu"

__device__ volatile unsigned never_set;

extern "C" __global__ void __launch_bounds__(baseline::kThreads)
    bsr_gemm_hang(const __half* __restrict__ values, const int* __restrict__ columns,
                  const int* __restrict__ row_offsets, const __half* __restrict__ b,
                  float* __restrict__ c, int n) {
  while (never_set == 0) __nanosleep(1000);
  baseline::compute_tile(values, columns, row_offsets[blockIdx.x], row_offsets[blockIdx.x + 1], b,
                         c, n);
}

static void launch(const sparsek::Operands& p) {
  bsr_gemm_hang<<<baseline::grid(p), baseline::kThreads>>>(p.values, p.columns, p.row_offsets, p.b,
                                                           p.c, p.n);
}

int main(int argc, char** argv) {
  return sparsek::run<sparsek::BsrGemm<baseline::kTileN>>(
      argc, argv, {"bsr_gemm_hang", nullptr, nullptr, launch});
}
