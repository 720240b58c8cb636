// Wrong on purpose, bsr_gemm_crash: the baseline writing its output where nothing is mapped. The
// launch succeeds and the next synchronising call reports an illegal address. Exits with 4.
#define BSR_GEMM_BODY_ONLY
#include "../bsr_gemm/baseline.cu"

// In the first page, which no driver maps.
constexpr std::size_t kUnmappedAddress = 256;

extern "C" __global__ void __launch_bounds__(baseline::kThreads)
    bsr_gemm_crash(const __half* __restrict__ values, const int* __restrict__ columns,
                   const int* __restrict__ row_offsets, const __half* __restrict__ b,
                   float* __restrict__ c, int n) {
  baseline::compute_tile(values, columns, row_offsets[blockIdx.x], row_offsets[blockIdx.x + 1], b,
                         c, n);
}

static void launch(const sparsek::Operands& p) {
  bsr_gemm_crash<<<baseline::grid(p), baseline::kThreads>>>(
      p.values, p.columns, p.row_offsets, p.b, reinterpret_cast<float*>(kUnmappedAddress), p.n);
}

int main(int argc, char** argv) {
  return sparsek::run<sparsek::BsrGemm<baseline::kTileN>>(
      argc, argv, {"bsr_gemm_crash", nullptr, nullptr, launch});
}
