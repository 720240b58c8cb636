// Rung 6, bsr_gemm_ldmatrix: the ring of cp_async with the instructions that WMMA hides. The
// operands come by ldmatrix and the products are mma.sync m16n8k16, whose fragments are documented.
// So rows in shared memory need no padding: their 16-byte chunks are swizzled, and the 8 rows that
// a matrix load reads at one column lie in 8 different groups of banks. 8 warps take the place of
// 4. C leaves straight from the registers, 16 bytes a lane. What it gained: docs/ladder.md.
//
// Thread block: 8 warps as WARPS_M x WARPS_N = 2x4, each with 64x32 of C in 64 registers a thread;
//   MIN_BLOCKS = 2 of them on a multiprocessor sets the register budget (128 a thread).
// Shared memory (dynamic): STAGES x (A 128x32, B TILE_N / 64 slabs of 32x64, 16-bit elements);
//   4 x 16,384 = 65,536 bytes by default.
// Barriers: one a step for all threads, as in cp_async: before it each thread waits for its own
//   copies of this step's stage, and after it every warp has read the stage that is refilled next.
// Grid: x walks the block-rows, so that thread blocks running together share a panel of B.
#include "../common/cp_async.cuh"
#include "../common/mbarrier.cuh"
#include "../common/mma.cuh"
#include "harness.cuh"
#include "store_tile.cuh"

#ifndef STAGES
#define STAGES 4
#endif
#ifndef SWIZZLE
#define SWIZZLE 1
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
// 1: a thread reads the column of a block a step before it copies the block; 0: where it copies it.
#ifndef COLUMN_AHEAD
#define COLUMN_AHEAD 0
#endif

namespace {

using sparsek::Element;
using sparsek::kBlockCols;
using sparsek::kBlockElements;
using sparsek::kBlockRows;
using sparsek::Operands;

constexpr int kStages = STAGES;
constexpr int kTileN = TILE_N;
constexpr int kThreads = 32 * WARPS_M * WARPS_N;
constexpr int kWarpTileM = kBlockRows / WARPS_M;
constexpr int kWarpTileN = kTileN / WARPS_N;
constexpr int kProductM = 16;
constexpr int kProductN = 8;
constexpr int kProductK = 16;
constexpr int kProductsM = kWarpTileM / kProductM;
constexpr int kProductsN = kWarpTileN / kProductN;
constexpr int kProductsK = kBlockCols / kProductK;

// In 16-byte chunks: a row of A has 4, and 2 rows fill the banks; a row of a slab of B has 8.
constexpr int kChunk = 16;
constexpr int kChunkElements = kChunk / static_cast<int>(sizeof(Element));
constexpr int kSlabColumns = 64;
constexpr int kRowBytesA = kBlockCols * static_cast<int>(sizeof(Element));
constexpr int kRowBytesB = kSlabColumns * static_cast<int>(sizeof(Element));
constexpr int kBytesA = kBlockRows * kRowBytesA;
constexpr int kSlabBytesB = kBlockCols * kRowBytesB;
constexpr int kStageBytes = kBytesA + kTileN / kSlabColumns * kSlabBytesB;
constexpr int kRingBytes = kStages * kStageBytes;
constexpr int kChunksRowA = kRowBytesA / kChunk;
constexpr int kChunksSlabRowB = kRowBytesB / kChunk;
constexpr int kChunksRowB = kTileN / kChunkElements;

// What all threads copy at a time.
constexpr int kRowsA = kThreads / kChunksRowA;
constexpr int kRowsB = kThreads / kChunksRowB;

static_assert(kStages >= 2, "a ring of one stage has nothing to run ahead into");
static_assert(kProductsM * kProductM * WARPS_M == kBlockRows, "the warps cover the rows");
static_assert(kProductsN % 2 == 0 && kProductsN * kProductN * WARPS_N == kTileN,
              "the warps cover the columns in pairs of products");
static_assert(kTileN % kSlabColumns == 0 && kSlabColumns % kWarpTileN == 0,
              "a warp's columns lie in one slab");
static_assert(kRowsA * kChunksRowA == kThreads && kRowsB * kChunksRowB == kThreads &&
                  kBlockRows % kRowsA == 0 && kBlockCols % kRowsB == 0,
              "no thread has a part of a chunk");
static_assert(kRowsA % 8 == 0 && kRowsB % 8 == 0, "all rows of a thread have the same swizzle");
static_assert(MIN_BLOCKS * (kRingBytes + 1024) <= 228 * 1024,
              "MIN_BLOCKS rings, each with the system's 1 KB, fit in a multiprocessor's 228 KB");

// Where a chunk of A or of a slab of B lies, in bytes from its start.
__device__ __forceinline__ int offset_a(int row, int chunk) {
  return row * kRowBytesA + (SWIZZLE ? chunk ^ row / 2 % 4 : chunk) * kChunk;
}
__device__ __forceinline__ int offset_b(int row, int chunk) {
  return row * kRowBytesB + (SWIZZLE ? chunk ^ row % 8 : chunk) * kChunk;
}

__device__ __forceinline__ void product(float (&d)[4], const std::uint32_t (&a)[4],
                                        std::uint32_t b0, std::uint32_t b1) {
  if constexpr (ELEMENT_BF16) sparsek::mma_m16n8k16_bf16(d, a, b0, b1);
  else sparsek::mma_m16n8k16(d, a, b0, b1);
}

}  // namespace

// One 128 x TILE_N tile of C.
extern "C" __global__ void __launch_bounds__(kThreads, MIN_BLOCKS)
    bsr_gemm_ldmatrix(const Element* __restrict__ values, const int* __restrict__ columns,
                      const int* __restrict__ row_offsets, const Element* __restrict__ b,
                      float* __restrict__ c, int n) {
  extern __shared__ __align__(128) unsigned char ring[];

  const int thread = threadIdx.x;
  const int warp = thread / 32;
  const int lane = thread % 32;
  const int warp_row = warp / WARPS_N * kWarpTileM;
  const int warp_column = warp % WARPS_N * kWarpTileN;
  const int tile_column = blockIdx.y * kTileN;
  const int first = row_offsets[blockIdx.x];
  const int last = row_offsets[blockIdx.x + 1];

  // Producer: every thread requests its share of the next block into a stage. A group is committed
  // even when no block is left, so that the count of groups keeps step with the count of steps.
  const int row_b = thread / kChunksRowB;
  const int column_b = thread % kChunksRowB;
  unsigned char* const target_a = ring + offset_a(thread / kChunksRowA, thread % kChunksRowA);
  unsigned char* const target_b = ring + kBytesA + column_b / kChunksSlabRowB * kSlabBytesB +
                                  offset_b(row_b, column_b % kChunksSlabRowB);
  const Element* const source_a = values + thread * kChunkElements;
  const Element* const source_b =
      b + static_cast<std::size_t>(row_b) * n + tile_column + column_b * kChunkElements;
  int next_block = first;
  int next_column = COLUMN_AHEAD && first < last ? columns[first] : 0;
  const auto request_next = [&](int stage) {
    if (next_block < last) {
      if (!COLUMN_AHEAD) next_column = columns[next_block];
      const Element* const block_a =
          source_a + static_cast<std::size_t>(next_block) * kBlockElements;
      const Element* block_b = source_b + static_cast<std::size_t>(next_column) * kBlockCols * n;
      ++next_block;
      // A step early, so that the addresses of the next copies need not wait for it.
      if (COLUMN_AHEAD && next_block < last) next_column = columns[next_block];

      const int offset = stage * kStageBytes;
#pragma unroll
      for (int row = 0; row < kBlockRows; row += kRowsA) {
        sparsek::cp_async_16(target_a + offset + row * kRowBytesA, block_a + row * kBlockCols);
      }
#pragma unroll
      for (int row = 0; row < kBlockCols; row += kRowsB) {
        sparsek::cp_async_16(target_b + offset + row * kRowBytesB, block_b);
        block_b += static_cast<std::size_t>(kRowsB) * n;
      }
    }
    sparsek::cp_async_commit();
  };

  // Where this lane's operands lie in the first stage: lane l points to row l % 16 of each 16x16,
  // its left or its right chunk. Steps of 16 rows leave the swizzle as it is; steps of two chunks
  // change one or two bits of the address that nothing else uses.
  const std::uint32_t ring_address = sparsek::shared_address(ring);
  const std::uint32_t lane_a = ring_address + offset_a(warp_row + lane % 16, lane / 16);
  const std::uint32_t lane_b =
      ring_address + kBytesA + warp_column / kSlabColumns * kSlabBytesB +
      offset_b(lane % 16, warp_column % kSlabColumns / kChunkElements + lane / 16);

  float sums[kProductsM][kProductsN][4] = {};

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
    const std::uint32_t stage = full_stage * kStageBytes;
#pragma unroll
    for (int k = 0; k < kProductsK; ++k) {
      std::uint32_t a[kProductsM][4];
#pragma unroll
      for (int i = 0; i < kProductsM; ++i) {
        sparsek::ldmatrix_x4(a[i],
                             ((lane_a + stage) ^ k * 2 * kChunk) + i * kProductM * kRowBytesA);
      }
#pragma unroll
      for (int pair = 0; pair < kProductsN / 2; ++pair) {
        std::uint32_t b_pair[4];
        sparsek::ldmatrix_x4_trans(
            b_pair, ((lane_b + stage) ^ pair * 2 * kChunk) + k * kProductK * kRowBytesB);
#pragma unroll
        for (int i = 0; i < kProductsM; ++i) {
          product(sums[i][pair * 2], a[i], b_pair[0], b_pair[1]);
          product(sums[i][pair * 2 + 1], a[i], b_pair[2], b_pair[3]);
        }
      }
    }

    full_stage = full_stage + 1 == kStages ? 0 : full_stage + 1;
    free_stage = free_stage + 1 == kStages ? 0 : free_stage + 1;
  }

  // Epilogue.
  const bool odd_lane = lane % 2 == 1;
  float* const lane_c =
      c + (static_cast<std::size_t>(blockIdx.x) * kBlockRows + warp_row + lane / 4) * n +
      tile_column + warp_column + lane % 2 * 8 + lane % 4 / 2 * 4;
  sparsek::store_tile(sums, lane_c, n, odd_lane);
}

static void prepare() {
  SPARSEK_CUDA_CHECK(cudaFuncSetAttribute(bsr_gemm_ldmatrix,
                                          cudaFuncAttributeMaxDynamicSharedMemorySize, kRingBytes));
  // The copies bypass L1, so nothing is lost by giving it up for MIN_BLOCKS rings.
  SPARSEK_CUDA_CHECK(cudaFuncSetAttribute(bsr_gemm_ldmatrix,
                                          cudaFuncAttributePreferredSharedMemoryCarveout,
                                          cudaSharedmemCarveoutMaxShared));
}

static void launch(const Operands& p) {
  const dim3 grid(p.m / kBlockRows, p.n / kTileN);
  bsr_gemm_ldmatrix<<<grid, kThreads, kRingBytes>>>(p.values, p.columns, p.row_offsets, p.b, p.c,
                                                    p.n);
}

int main(int argc, char** argv) {
  return sparsek::run<sparsek::BsrGemm<kTileN>>(
      argc, argv, {"bsr_gemm_ldmatrix", nullptr, prepare, launch});
}
