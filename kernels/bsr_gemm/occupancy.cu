// Rung 4, bsr_gemm_occupancy: the tile and the steps of baseline on twice the warps. The 64x64 of C
// of a warp of baseline need 128 accumulator registers a thread and leave room for 8 warps on a
// multiprocessor; 64x32 a warp need 64 and fit under 128 registers, and 16 warps hide more of each
// step's load latency. The price is 1.5 times the shared-memory reads for each product. It is no
// faster, so the next rung starts from baseline. What it gained: docs/ladder.md.
//
// What it teaches: two thread blocks a multiprocessor already overlap each other's loads, so more
// warps gain nothing, and the shared-memory reads take the rest. What stays is the wait between a
// step's load and its use.
//
// Why not a larger tile: 256 rows are two block-rows of A with different columns, so nothing of B
// would be shared; 256 columns would need 16 warps to keep 64 accumulators a thread, one thread
// block on a multiprocessor, and nobody to compute while it loads.
//
// Thread block: 8 warps as WARPS_M x WARPS_N = 2x4; MIN_BLOCKS = 2 of them on a multiprocessor sets
// the register budget (65,536 / 512 = 128 a thread).
// Shared memory: A 128 x (32 + SMEM_PAD) and B 32 x (TILE_N + SMEM_PAD) fp16; 18,944 bytes as
//   padded.
// Barriers: all threads, two a step: tiles free to overwrite, tiles complete.
// Grid: x walks the block-rows, so that thread blocks running together share a panel of B.
#include <mma.h>

#include "harness.cuh"

#ifndef SMEM_PAD
#define SMEM_PAD 8
#endif
#ifndef TILE_N
#define TILE_N 128
#endif
#ifndef WARPS_M
#define WARPS_M 2
#endif
#ifndef WARPS_N
#define WARPS_N 4
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 2
#endif

namespace {

using namespace nvcuda;
using sparsek::kBlockCols;
using sparsek::kBlockElements;
using sparsek::kBlockRows;
using sparsek::Operands;

constexpr int kTileN = TILE_N;
constexpr int kWarpsM = WARPS_M;
constexpr int kWarpsN = WARPS_N;
constexpr int kThreads = 32 * kWarpsM * kWarpsN;
constexpr int kFragment = 16;
constexpr int kFragmentsM = kBlockRows / kWarpsM / kFragment;
constexpr int kFragmentsN = kTileN / kWarpsN / kFragment;
constexpr int kVector = 8;  // fp16 elements in a 16-byte access

constexpr int kStrideA = kBlockCols + SMEM_PAD;
constexpr int kStrideB = kTileN + SMEM_PAD;
constexpr int kVectorsA = kBlockElements / kVector / kThreads;
constexpr int kVectorsB = kBlockCols * kTileN / kVector / kThreads;

static_assert(SMEM_PAD >= 0 && SMEM_PAD % kVector == 0, "rows stay aligned to 16 bytes");
static_assert(kFragmentsM * kWarpsM * kFragment == kBlockRows, "the warps cover the rows");
static_assert(kFragmentsN * kWarpsN * kFragment == kTileN, "the warps cover the columns");
static_assert(kVectorsA * kVector * kThreads == kBlockElements, "no thread has a part of a vector");
static_assert(kVectorsB * kVector * kThreads == kBlockCols * kTileN, "likewise for B");
static_assert((kBlockRows * kStrideA + kBlockCols * kStrideB) * sizeof(__half) <= 48 * 1024,
              "static shared memory ends at 48 KB");

using FragmentA = wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major>;
using FragmentB = wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major>;
using Accumulator = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

}  // namespace

// One 128 x TILE_N tile of C.
extern "C" __global__ void __launch_bounds__(kThreads, MIN_BLOCKS)
    bsr_gemm_occupancy(const __half* __restrict__ values, const int* __restrict__ columns,
                       const int* __restrict__ row_offsets, const __half* __restrict__ b,
                       float* __restrict__ c, int n) {
  __shared__ __align__(128) __half shared_a[kBlockRows * kStrideA];
  __shared__ __align__(128) __half shared_b[kBlockCols * kStrideB];

  const int thread = threadIdx.x;
  const int warp_row = thread / 32 / kWarpsN * (kBlockRows / kWarpsM);
  const int warp_column = thread / 32 % kWarpsN * (kTileN / kWarpsN);
  const int tile_row = blockIdx.x * kBlockRows;
  const int tile_column = blockIdx.y * kTileN;

  Accumulator sums[kFragmentsM][kFragmentsN];
#pragma unroll
  for (int i = 0; i < kFragmentsM; ++i) {
#pragma unroll
    for (int j = 0; j < kFragmentsN; ++j) wmma::fill_fragment(sums[i][j], 0.0f);
  }

  const int last = row_offsets[blockIdx.x + 1];
  for (int block = row_offsets[blockIdx.x]; block < last; ++block) {
    const __half* block_a = values + static_cast<std::size_t>(block) * kBlockElements;
    const __half* block_b =
        b + static_cast<std::size_t>(columns[block]) * kBlockCols * n + tile_column;

    // Global to registers: all loads before the first use.
    uint4 vectors_a[kVectorsA], vectors_b[kVectorsB];
#pragma unroll
    for (int i = 0; i < kVectorsA; ++i) {
      const int element = (thread + i * kThreads) * kVector;
      vectors_a[i] = *reinterpret_cast<const uint4*>(block_a + element);
    }
#pragma unroll
    for (int i = 0; i < kVectorsB; ++i) {
      const int element = (thread + i * kThreads) * kVector;
      const int row = element / kTileN, column = element % kTileN;
      vectors_b[i] =
          *reinterpret_cast<const uint4*>(block_b + static_cast<std::size_t>(row) * n + column);
    }

    // Registers to shared memory, once every warp has finished with the step before.
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kVectorsA; ++i) {
      const int element = (thread + i * kThreads) * kVector;
      const int row = element / kBlockCols, column = element % kBlockCols;
      *reinterpret_cast<uint4*>(shared_a + row * kStrideA + column) = vectors_a[i];
    }
#pragma unroll
    for (int i = 0; i < kVectorsB; ++i) {
      const int element = (thread + i * kThreads) * kVector;
      const int row = element / kTileN, column = element % kTileN;
      *reinterpret_cast<uint4*>(shared_b + row * kStrideB + column) = vectors_b[i];
    }
    __syncthreads();

    // Tensor cores.
#pragma unroll
    for (int k = 0; k < kBlockCols; k += kFragment) {
      FragmentB fragments_b[kFragmentsN];
#pragma unroll
      for (int j = 0; j < kFragmentsN; ++j) {
        wmma::load_matrix_sync(fragments_b[j],
                               shared_b + k * kStrideB + warp_column + j * kFragment, kStrideB);
      }
#pragma unroll
      for (int i = 0; i < kFragmentsM; ++i) {
        FragmentA fragment_a;
        wmma::load_matrix_sync(fragment_a, shared_a + (warp_row + i * kFragment) * kStrideA + k,
                               kStrideA);
#pragma unroll
        for (int j = 0; j < kFragmentsN; ++j) {
          wmma::mma_sync(sums[i][j], fragment_a, fragments_b[j], sums[i][j]);
        }
      }
    }
  }

  // Epilogue: accumulators straight to C.
#pragma unroll
  for (int i = 0; i < kFragmentsM; ++i) {
    float* row = c + static_cast<std::size_t>(tile_row + warp_row + i * kFragment) * n +
                 tile_column + warp_column;
#pragma unroll
    for (int j = 0; j < kFragmentsN; ++j) {
      wmma::store_matrix_sync(row + j * kFragment, sums[i][j], n, wmma::mem_row_major);
    }
  }
}

static void launch(const Operands& p) {
  const dim3 grid(p.m / kBlockRows, p.n / kTileN);
  bsr_gemm_occupancy<<<grid, kThreads>>>(p.values, p.columns, p.row_offsets, p.b, p.c, p.n);
}

int main(int argc, char** argv) {
  return sparsek::run<sparsek::BsrGemm<kTileN>>(
      argc, argv, {"bsr_gemm_occupancy", nullptr, nullptr, launch});
}
