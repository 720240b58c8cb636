// Wrong on purpose, bsr_gemm_skipped_tail: the baseline that never computes the last 128 columns of
// C, as a loop that ends one tile early. The output keeps the check's poison there; fewer stores
// and fewer operations show it as well. Exits with 1.
#define BSR_GEMM_BODY_ONLY
#include "../bsr_gemm/baseline.cu"

extern "C" __global__ void __launch_bounds__(baseline::kThreads)
    bsr_gemm_skipped_tail(const __half* __restrict__ values, const int* __restrict__ columns,
                          const int* __restrict__ row_offsets, const __half* __restrict__ b,
                          float* __restrict__ c, int n) {
  if (blockIdx.y == gridDim.y - 1) return;
  baseline::compute_tile(values, columns, row_offsets[blockIdx.x], row_offsets[blockIdx.x + 1], b,
                         c, n);
}

static void launch(const sparsek::Operands& p) {
  bsr_gemm_skipped_tail<<<baseline::grid(p), baseline::kThreads>>>(p.values, p.columns,
                                                                   p.row_offsets, p.b, p.c, p.n);
}

int main(int argc, char** argv) {
  return sparsek::run<sparsek::BsrGemm<baseline::kTileN>>(
      argc, argv, {"bsr_gemm_skipped_tail", nullptr, nullptr, launch});
}
