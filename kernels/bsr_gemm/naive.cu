// Rung 1, bsr_gemm_naive: the definition, a thread an element of C. Each thread walks the blocks of
// its block-row and adds up its products with scalar fp32 instructions: no tensor cores, no shared
// memory, two loads for every multiply-add. Its time: docs/ladder.md.
//
// What it teaches: every element of A is loaded by all threads of a row, every element of B by all
// threads of a column. The L1 serves most of that, but each load is an instruction.
//
// Thread block: 64 columns x 4 rows of C, a thread each. The lanes of a warp take neighbouring
// columns: they read one element of A together, and 64 consecutive bytes of B.
// Shared memory: none.
// Barriers: none.
// Operations: one FFMA, 2 operations, for each product.
// Grid: x walks the rows, so that thread blocks running together share the columns of B.
#include "harness.cuh"

namespace {

using sparsek::Element;
using sparsek::kBlockCols;
using sparsek::kBlockElements;
using sparsek::kBlockRows;
using sparsek::Operands;

constexpr int kTileN = 64;
constexpr int kTileM = 4;
constexpr int kThreads = kTileN * kTileM;

static_assert(kBlockRows % kTileM == 0, "a thread block stays in one block-row");

}  // namespace

// A 4 x 64 tile of C.
extern "C" __global__ void __launch_bounds__(kThreads)
    bsr_gemm_naive(const Element* __restrict__ values, const int* __restrict__ columns,
                   const int* __restrict__ row_offsets, const Element* __restrict__ b,
                   float* __restrict__ c, int n) {
  const int row = blockIdx.x * kTileM + threadIdx.x / kTileN;
  const int column = blockIdx.y * kTileN + threadIdx.x % kTileN;
  const int block_row = row / kBlockRows;
  const Element* const row_a = values + row % kBlockRows * kBlockCols;
  const Element* const column_b = b + column;

  float sum = 0;
  const int last = row_offsets[block_row + 1];
  for (int block = row_offsets[block_row]; block < last; ++block) {
    const Element* const block_a = row_a + static_cast<std::size_t>(block) * kBlockElements;
    const Element* const block_b =
        column_b + static_cast<std::size_t>(columns[block]) * kBlockCols * n;
#pragma unroll 8
    for (int k = 0; k < kBlockCols; ++k) {
      sum = fmaf(sparsek::to_float(block_a[k]),
                 sparsek::to_float(block_b[static_cast<std::size_t>(k) * n]), sum);
    }
  }
  c[static_cast<std::size_t>(row) * n + column] = sum;
}

static void launch(const Operands& p) {
  const dim3 grid(p.m / kTileM, p.n / kTileN);
  bsr_gemm_naive<<<grid, kThreads>>>(p.values, p.columns, p.row_offsets, p.b, p.c, p.n);
}

int main(int argc, char** argv) {
  return sparsek::run<sparsek::BsrGemm<kTileN>>(
      argc, argv, {"bsr_gemm_naive", nullptr, nullptr, launch});
}
