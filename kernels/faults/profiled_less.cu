// Wrong on purpose, bsr_gemm_profiled_less: the kernel of cp_async, which gets other operands where
// it is profiled: every block of A meets the first rows of B, which stay in the cache. It counts the
// same operations and stores, moves less, and its numbers are right wherever else it runs. Only a
// check of the launches that are measured tells. Exits with 1 in mode profile with --result.
#include <cstring>

#include "ring.cuh"

#ifndef KERNEL_NAME
#define KERNEL_NAME bsr_gemm_profiled_less
#endif

extern "C" __global__ void __launch_bounds__(ring::kThreads, ring::kMinBlocks)
    KERNEL_NAME(const __half* __restrict__ values, const int* __restrict__ columns,
                const int* __restrict__ row_offsets, const __half* __restrict__ b,
                float* __restrict__ c, int n) {
  ring::compute_tile<ring::NoFault>(values, columns, row_offsets, b, c, n);
}

namespace {

bool profiled = false;

// The operands under test, or those with the first block column in the place of every other.
sparsek::Operands cheaper(sparsek::Operands p) {
  static int* first = nullptr;
  if (!profiled) return p;
  if (first == nullptr) {
    int blocks = 0;
    SPARSEK_CUDA_CHECK(cudaMemcpy(&blocks, p.row_offsets + p.m / sparsek::kBlockRows, sizeof blocks,
                                  cudaMemcpyDeviceToHost));
    SPARSEK_CUDA_CHECK(cudaMalloc(&first, blocks * sizeof(int)));
    SPARSEK_CUDA_CHECK(cudaMemset(first, 0, blocks * sizeof(int)));
  }
  p.columns = first;
  return p;
}

void launch(const sparsek::Operands& p) {
  ring::launch<ring::NoFault, KERNEL_NAME>(cheaper(p));
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) profiled = profiled || std::strcmp(argv[i], "profile") == 0;
  return sparsek::run<sparsek::BsrGemm<ring::kTileN>>(
      argc, argv,
      {RING_NAME(KERNEL_NAME), nullptr, ring::prepare<ring::NoFault, KERNEL_NAME>, launch});
}
