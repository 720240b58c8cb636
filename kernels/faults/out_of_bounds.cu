// Wrong on purpose, bsr_gemm_out_of_bounds: the baseline that computes C rightly and then writes
// one element far past its end. The launch succeeds and the next synchronising call reports an
// illegal address; compute-sanitizer's memcheck names the write. Exits with 4.
#define BSR_GEMM_BODY_ONLY
#include "../bsr_gemm/baseline.cu"

// 128 TiB: beyond every address that a process on x86-64 can have mapped, so that no neighbouring
// allocation takes the write.
constexpr std::size_t kBytesPastTheEnd = std::size_t(1) << 47;

extern "C" __global__ void __launch_bounds__(baseline::kThreads)
    bsr_gemm_out_of_bounds(const __half* __restrict__ values, const int* __restrict__ columns,
                           const int* __restrict__ row_offsets, const __half* __restrict__ b,
                           float* __restrict__ c, int n) {
  baseline::compute_tile(values, columns, row_offsets[blockIdx.x], row_offsets[blockIdx.x + 1], b,
                         c, n);
  const bool is_last = blockIdx.x == gridDim.x - 1 && blockIdx.y == gridDim.y - 1;
  if (is_last && threadIdx.x == 0) {
    const std::size_t end = static_cast<std::size_t>(gridDim.x) * sparsek::kBlockRows * n;
    c[end + kBytesPastTheEnd / sizeof(float)] = 0;
  }
}

static void launch(const sparsek::Operands& p) {
  bsr_gemm_out_of_bounds<<<baseline::grid(p), baseline::kThreads>>>(p.values, p.columns,
                                                                    p.row_offsets, p.b, p.c, p.n);
}

int main(int argc, char** argv) {
  return sparsek::run<sparsek::BsrGemm<baseline::kTileN>>(
      argc, argv, {"bsr_gemm_out_of_bounds", nullptr, nullptr, launch});
}
