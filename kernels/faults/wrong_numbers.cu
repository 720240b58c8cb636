// Wrong on purpose, bsr_gemm_wrong_numbers: the baseline that leaves out the last block of every
// block-row. It has less to do than the baseline and writes plausible numbers everywhere; only a
// reference check tells. Exits with 1.
#define BSR_GEMM_BODY_ONLY
#include "../bsr_gemm/baseline.cu"

extern "C" __global__ void __launch_bounds__(baseline::kThreads)
    bsr_gemm_wrong_numbers(const __half* __restrict__ values, const int* __restrict__ columns,
                           const int* __restrict__ row_offsets, const __half* __restrict__ b,
                           float* __restrict__ c, int n) {
  baseline::compute_tile(values, columns, row_offsets[blockIdx.x], row_offsets[blockIdx.x + 1] - 1,
                         b, c, n);
}

static void launch(const sparsek::Operands& p) {
  bsr_gemm_wrong_numbers<<<baseline::grid(p), baseline::kThreads>>>(p.values, p.columns,
                                                                    p.row_offsets, p.b, p.c, p.n);
}

int main(int argc, char** argv) {
  return sparsek::run<sparsek::BsrGemm<baseline::kTileN>>(
      argc, argv, {"bsr_gemm_wrong_numbers", nullptr, nullptr, launch});
}
