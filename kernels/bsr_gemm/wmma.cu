// Rung 2, bsr_gemm_wmma: the products of naive on the tensor cores. A warp takes 64x64 of C in
// fragments of 16x16 and loads the operands of each product straight from global memory. It loads
// an element of A once for 64 columns of C, and one of B once for 64 rows. What it gained:
// docs/ladder.md.
//
// What it teaches: the tensor cores wait for loads. The four warps of a thread block load the same
// A twice and the same B twice, and nobody loads before the products of the step have been issued.
//
// Thread block: 4 warps as 2x2, each 64x64 of C in 4x4 accumulators.
// Shared memory: none.
// Barriers: none; the warps do not depend on each other.
// Grid: x walks the block-rows, so that thread blocks running together share a panel of B.
#include <mma.h>

#include "harness.cuh"

namespace {

using namespace nvcuda;
using sparsek::Element;
using sparsek::kBlockCols;
using sparsek::kBlockElements;
using sparsek::kBlockRows;
using sparsek::Operands;

constexpr int kTileN = 128;
constexpr int kWarpsM = 2;
constexpr int kWarpsN = 2;
constexpr int kThreads = 32 * kWarpsM * kWarpsN;
constexpr int kWarpTileM = kBlockRows / kWarpsM;
constexpr int kWarpTileN = kTileN / kWarpsN;
constexpr int kFragment = 16;
constexpr int kFragmentsM = kWarpTileM / kFragment;
constexpr int kFragmentsN = kWarpTileN / kFragment;

static_assert(kFragmentsM * kWarpsM * kFragment == kBlockRows, "the warps cover the rows");
static_assert(kFragmentsN * kWarpsN * kFragment == kTileN, "the warps cover the columns");

using FragmentA = wmma::fragment<wmma::matrix_a, 16, 16, 16, Element, wmma::row_major>;
using FragmentB = wmma::fragment<wmma::matrix_b, 16, 16, 16, Element, wmma::row_major>;
using Accumulator = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

}  // namespace

// One 128x128 tile of C.
extern "C" __global__ void __launch_bounds__(kThreads)
    bsr_gemm_wmma(const Element* __restrict__ values, const int* __restrict__ columns,
                  const int* __restrict__ row_offsets, const Element* __restrict__ b,
                  float* __restrict__ c, int n) {
  const int warp = threadIdx.x / 32;
  const int warp_row = warp / kWarpsN * kWarpTileM;
  const int warp_column = blockIdx.y * kTileN + warp % kWarpsN * kWarpTileN;

  Accumulator sums[kFragmentsM][kFragmentsN];
#pragma unroll
  for (int i = 0; i < kFragmentsM; ++i) {
#pragma unroll
    for (int j = 0; j < kFragmentsN; ++j) wmma::fill_fragment(sums[i][j], 0.0f);
  }

  const int last = row_offsets[blockIdx.x + 1];
  for (int block = row_offsets[blockIdx.x]; block < last; ++block) {
    const Element* const block_a =
        values + static_cast<std::size_t>(block) * kBlockElements + warp_row * kBlockCols;
    const Element* const block_b =
        b + static_cast<std::size_t>(columns[block]) * kBlockCols * n + warp_column;
#pragma unroll
    for (int k = 0; k < kBlockCols; k += kFragment) {
      FragmentB fragments_b[kFragmentsN];
#pragma unroll
      for (int j = 0; j < kFragmentsN; ++j) {
        wmma::load_matrix_sync(fragments_b[j],
                               block_b + static_cast<std::size_t>(k) * n + j * kFragment, n);
      }
#pragma unroll
      for (int i = 0; i < kFragmentsM; ++i) {
        FragmentA fragment_a;
        wmma::load_matrix_sync(fragment_a, block_a + i * kFragment * kBlockCols + k, kBlockCols);
#pragma unroll
        for (int j = 0; j < kFragmentsN; ++j) {
          wmma::mma_sync(sums[i][j], fragment_a, fragments_b[j], sums[i][j]);
        }
      }
    }
  }

#pragma unroll
  for (int i = 0; i < kFragmentsM; ++i) {
    float* const row =
        c + (static_cast<std::size_t>(blockIdx.x) * kBlockRows + warp_row + i * kFragment) * n +
        warp_column;
#pragma unroll
    for (int j = 0; j < kFragmentsN; ++j) {
      wmma::store_matrix_sync(row + j * kFragment, sums[i][j], n, wmma::mem_row_major);
    }
  }
}

static void launch(const Operands& p) {
  const dim3 grid(p.m / kBlockRows, p.n / kTileN);
  bsr_gemm_wmma<<<grid, kThreads>>>(p.values, p.columns, p.row_offsets, p.b, p.c, p.n);
}

int main(int argc, char** argv) {
  return sparsek::run<sparsek::BsrGemm<kTileN>>(
      argc, argv, {"bsr_gemm_wmma", nullptr, nullptr, launch});
}
