// Rung 5, bsr_gemm_cp_async: baseline with asynchronous copies, which run STAGES - 1 steps ahead of
// the tensor cores, through a ring of shared-memory stages. They need no registers, and one barrier
// a step is enough. C leaves through shared memory, in whole rows. What it gained: docs/ladder.md.
//
// Thread block: WARPS_M x WARPS_N = 2x2 warps, MIN_BLOCKS = 2 of them on a multiprocessor, so that
// one computes while the other fills its ring or stores.
// Shared memory (dynamic): STAGES x (A 128 x (32 + SMEM_PAD), B 32 x (TILE_N + SMEM_PAD)) fp16;
//   4 x 18,944 = 75,776 bytes by default. The epilogue stages C in the same bytes, one slab of 16
//   rows a warp.
// Barriers: one a step for all threads. Before it, each thread waits for its own copies of this
//   step's stage; after it, everybody's are visible, and every warp has finished with the stage of
//   the step before, which is the one refilled next. The epilogue needs one more, since its slabs
//   overlay the ring.
// Grid: x walks the block-rows, so that thread blocks running together share a panel of B.
#include <mma.h>

#include "../common/cp_async.cuh"
#include "harness.cuh"

#ifndef STAGES
#define STAGES 4
#endif
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
#define WARPS_N 2
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 2
#endif
// 1: a thread reads the column of a block a step before it copies the block; 0: where it copies it.
#ifndef COLUMN_AHEAD
#define COLUMN_AHEAD 0
#endif

namespace {

using namespace nvcuda;
using sparsek::kBlockCols;
using sparsek::kBlockElements;
using sparsek::kBlockRows;
using sparsek::Operands;

constexpr int kStages = STAGES;
constexpr int kTileN = TILE_N;
constexpr int kWarps = WARPS_M * WARPS_N;
constexpr int kThreads = 32 * kWarps;
constexpr int kWarpTileM = kBlockRows / WARPS_M;
constexpr int kWarpTileN = kTileN / WARPS_N;
constexpr int kFragment = 16;
constexpr int kFragmentsM = kWarpTileM / kFragment;
constexpr int kFragmentsN = kWarpTileN / kFragment;
constexpr int kVector = 8;  // fp16 elements in a 16-byte copy

constexpr int kStrideA = kBlockCols + SMEM_PAD;
constexpr int kStrideB = kTileN + SMEM_PAD;
constexpr int kElementsA = kBlockRows * kStrideA;
constexpr int kStageElements = kElementsA + kBlockCols * kStrideB;
constexpr int kRingBytes = kStages * kStageElements * static_cast<int>(sizeof(__half));
constexpr int kVectorsA = kBlockElements / kVector / kThreads;
constexpr int kVectorsB = kBlockCols * kTileN / kVector / kThreads;

// One slab of C: 8 floats of padding put the four rows of a store's half-warp into different banks.
constexpr int kSlabStride = kWarpTileN + 8;
constexpr int kSlabElements = kFragment * kSlabStride;
constexpr int kLanesPerRow = kWarpTileN / 4;
constexpr int kRowsPerStore = 32 / kLanesPerRow;

static_assert(kStages >= 2, "a ring of one stage has nothing to run ahead into");
static_assert(SMEM_PAD >= 0 && SMEM_PAD % kVector == 0, "rows stay aligned to 16 bytes");
static_assert(kFragmentsM * WARPS_M * kFragment == kBlockRows, "the warps cover the rows");
static_assert(kFragmentsN * WARPS_N * kFragment == kTileN, "the warps cover the columns");
static_assert(kVectorsA * kVector * kThreads == kBlockElements, "no thread has a part of a vector");
static_assert(kVectorsB * kVector * kThreads == kBlockCols * kTileN, "likewise for B");
static_assert(kStageElements * sizeof(__half) % 128 == 0, "every stage starts aligned");
static_assert(kLanesPerRow <= 32 && 32 % kLanesPerRow == 0, "a store covers whole rows of a slab");
static_assert(kWarps * kSlabElements * static_cast<int>(sizeof(float)) <= kRingBytes,
              "the epilogue's slabs fit in the ring");
static_assert(MIN_BLOCKS * (kRingBytes + 1024) <= 228 * 1024,
              "MIN_BLOCKS rings, each with the system's 1 KB, fit in a multiprocessor's 228 KB");

using FragmentA = wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major>;
using FragmentB = wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major>;
using Accumulator = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

}  // namespace

// One 128 x TILE_N tile of C.
extern "C" __global__ void __launch_bounds__(kThreads, MIN_BLOCKS)
    bsr_gemm_cp_async(const __half* __restrict__ values, const int* __restrict__ columns,
                      const int* __restrict__ row_offsets, const __half* __restrict__ b,
                      float* __restrict__ c, int n) {
  extern __shared__ __align__(128) unsigned char shared[];
  __half* const ring = reinterpret_cast<__half*>(shared);

  const int thread = threadIdx.x;
  const int warp = thread / 32;
  const int lane = thread % 32;
  const int warp_row = warp / WARPS_N * kWarpTileM;
  const int warp_column = warp % WARPS_N * kWarpTileN;
  const int tile_row = blockIdx.x * kBlockRows;
  const int tile_column = blockIdx.y * kTileN;
  const int first = row_offsets[blockIdx.x];
  const int last = row_offsets[blockIdx.x + 1];

  // Producer: every thread requests its share of the next block into a stage. A group is committed
  // even when no block is left, so that the count of groups keeps step with the count of steps.
  int next_block = first;
  int next_column = COLUMN_AHEAD && first < last ? columns[first] : 0;
  const auto request_next = [&](int stage) {
    if (next_block < last) {
      const __half* block_a = values + static_cast<std::size_t>(next_block) * kBlockElements;
      if (!COLUMN_AHEAD) next_column = columns[next_block];
      const __half* block_b =
          b + static_cast<std::size_t>(next_column) * kBlockCols * n + tile_column;
      ++next_block;
      // A step early, so that the addresses of the next copies need not wait for it.
      if (COLUMN_AHEAD && next_block < last) next_column = columns[next_block];

      __half* stage_a = ring + stage * kStageElements;
      __half* stage_b = stage_a + kElementsA;
#pragma unroll
      for (int i = 0; i < kVectorsA; ++i) {
        const int element = (thread + i * kThreads) * kVector;
        const int row = element / kBlockCols, column = element % kBlockCols;
        sparsek::cp_async_16(stage_a + row * kStrideA + column, block_a + element);
      }
#pragma unroll
      for (int i = 0; i < kVectorsB; ++i) {
        const int element = (thread + i * kThreads) * kVector;
        const int row = element / kTileN, column = element % kTileN;
        sparsek::cp_async_16(stage_b + row * kStrideB + column,
                             block_b + static_cast<std::size_t>(row) * n + column);
      }
    }
    sparsek::cp_async_commit();
  };

  Accumulator sums[kFragmentsM][kFragmentsN];
#pragma unroll
  for (int i = 0; i < kFragmentsM; ++i) {
#pragma unroll
    for (int j = 0; j < kFragmentsN; ++j) wmma::fill_fragment(sums[i][j], 0.0f);
  }

  // Fill all stages but one.
  for (int stage = 0; stage < kStages - 1; ++stage) request_next(stage);

  int full_stage = 0;
  int free_stage = kStages - 1;
  for (int block = first; block < last; ++block) {
    // Wait for this step's stage: the latest kStages - 2 groups may still be under way.
    sparsek::cp_async_wait<kStages - 2>();
    __syncthreads();
    request_next(free_stage);

    // Consumer: tensor cores on the full stage.
    const __half* stage_a = ring + full_stage * kStageElements;
    const __half* stage_b = stage_a + kElementsA;
#pragma unroll
    for (int k = 0; k < kBlockCols; k += kFragment) {
      FragmentB fragments_b[kFragmentsN];
#pragma unroll
      for (int j = 0; j < kFragmentsN; ++j) {
        wmma::load_matrix_sync(fragments_b[j],
                               stage_b + k * kStrideB + warp_column + j * kFragment, kStrideB);
      }
#pragma unroll
      for (int i = 0; i < kFragmentsM; ++i) {
        FragmentA fragment_a;
        wmma::load_matrix_sync(fragment_a, stage_a + (warp_row + i * kFragment) * kStrideA + k,
                               kStrideA);
#pragma unroll
        for (int j = 0; j < kFragmentsN; ++j) {
          wmma::mma_sync(sums[i][j], fragment_a, fragments_b[j], sums[i][j]);
        }
      }
    }

    full_stage = full_stage + 1 == kStages ? 0 : full_stage + 1;
    free_stage = free_stage + 1 == kStages ? 0 : free_stage + 1;
  }

  // Epilogue: through the warp's own slab, so that a store writes whole rows, 16 bytes a lane. C is
  // not read again here: streaming stores leave the L2 to B. Only groups without copies are still
  // open, so the barrier is all the ring needs before it is overlaid.
  __syncthreads();
  float* const slab = reinterpret_cast<float*>(shared) + warp * kSlabElements;
  const int lane_row = lane / kLanesPerRow;
  const int lane_column = lane % kLanesPerRow * 4;
  float* const warp_c = c + static_cast<std::size_t>(tile_row + warp_row) * n + tile_column +
                        warp_column + lane_column;
#pragma unroll
  for (int i = 0; i < kFragmentsM; ++i) {
#pragma unroll
    for (int j = 0; j < kFragmentsN; ++j) {
      wmma::store_matrix_sync(slab + j * kFragment, sums[i][j], kSlabStride, wmma::mem_row_major);
    }
    __syncwarp();
#pragma unroll
    for (int r = 0; r < kFragment; r += kRowsPerStore) {
      const int row = r + lane_row;
      const float4 sum =
          *reinterpret_cast<const float4*>(slab + row * kSlabStride + lane_column);
      __stcs(reinterpret_cast<float4*>(warp_c + static_cast<std::size_t>(i * kFragment + row) * n),
             sum);
    }
    __syncwarp();
  }
}

static void prepare() {
  SPARSEK_CUDA_CHECK(cudaFuncSetAttribute(bsr_gemm_cp_async,
                                          cudaFuncAttributeMaxDynamicSharedMemorySize, kRingBytes));
  // The copies bypass L1, so nothing is lost by giving it up for MIN_BLOCKS rings.
  SPARSEK_CUDA_CHECK(cudaFuncSetAttribute(bsr_gemm_cp_async,
                                          cudaFuncAttributePreferredSharedMemoryCarveout,
                                          cudaSharedmemCarveoutMaxShared));
}

static void launch(const Operands& p) {
  const dim3 grid(p.m / kBlockRows, p.n / kTileN);
  bsr_gemm_cp_async<<<grid, kThreads, kRingBytes>>>(p.values, p.columns, p.row_offsets, p.b, p.c,
                                                    p.n);
}

int main(int argc, char** argv) {
  return sparsek::run<sparsek::BsrGemm<kTileN>>(
      argc, argv, {"bsr_gemm_cp_async", nullptr, prepare, launch});
}
