// Rung 7, bsr_gemm_producers: ldmatrix, but the warps divide the work. One warp group does nothing
// but copy, the other warps nothing but multiply and store, and they meet at barriers that count: a
// warp waits only for the stage that it needs, where the rung before stops all threads at every
// step. Warps that do not copy have registers for 64x64 of C, so the tile is twice as wide, and a
// block of A is copied half as often. What it gained: docs/ladder.md.
//
// Thread block: 4 producer warps and 2x4 consumer warps, each of these with 64x64 of the tile's
//   128x256. All have the same register budget, 168 a thread: 128 sums and the operands of one
//   product, but not those of the next.
// Shared memory (dynamic): STAGES x (A 128x32, B 4 slabs of 32x64, 16-bit elements); 8 x 24,576 =
//   196,608 bytes and the barriers. C goes straight from registers to memory.
// Barriers: full[stage] 128 arrivals (each producer thread, by its copies when they have come); the
//   consumers wait. empty[stage] 8 arrivals (the consumer warps, when they have read it); the
//   producers wait.
// Grid: a thread block a tile, one on a multiprocessor; x walks the block-rows, so that thread
//   blocks running together share a panel of B.
#include "../common/cp_async_barrier.cuh"
#include "../common/mbarrier.cuh"
#include "../common/mma.cuh"
#include "../common/ring.cuh"
#include "harness.cuh"
#include "store_tile.cuh"

#ifndef STAGES
#define STAGES 8
#endif
#ifndef SWIZZLE
#define SWIZZLE 1
#endif

namespace {

using sparsek::Barrier;
using sparsek::Element;
using sparsek::kBlockCols;
using sparsek::kBlockElements;
using sparsek::kBlockRows;
using sparsek::Operands;

constexpr int kStages = STAGES;
constexpr int kTileN = 256;
constexpr int kWarpTile = 64;  // of C, rows and columns
constexpr int kProducerWarps = 4;
constexpr int kProducers = 32 * kProducerWarps;
constexpr int kConsumersN = kTileN / kWarpTile;
constexpr int kConsumers = kBlockRows / kWarpTile * kConsumersN;  // warps
constexpr int kThreads = kProducers + 32 * kConsumers;
constexpr int kProductM = 16;
constexpr int kProductN = 8;
constexpr int kProductK = 16;
constexpr int kProductsM = kWarpTile / kProductM;
constexpr int kProductsN = kWarpTile / kProductN;
constexpr int kProductsK = kBlockCols / kProductK;

// In 16-byte chunks: a row of A has 4, and 2 rows fill the banks; a row of a slab of B has 8.
constexpr int kChunk = 16;
constexpr int kChunkElements = kChunk / static_cast<int>(sizeof(Element));
constexpr int kRowBytesA = kBlockCols * static_cast<int>(sizeof(Element));
constexpr int kRowBytesB = kWarpTile * static_cast<int>(sizeof(Element));
constexpr int kBytesA = kBlockRows * kRowBytesA;
constexpr int kSlabBytesB = kBlockCols * kRowBytesB;
constexpr int kStageBytes = kBytesA + kConsumersN * kSlabBytesB;
constexpr int kSharedBytes = kStages * (kStageBytes + 2 * static_cast<int>(sizeof(Barrier)));

// What all producers copy at a time.
constexpr int kChunksRowA = kRowBytesA / kChunk;
constexpr int kChunksRowB = kTileN / kChunkElements;
constexpr int kChunksSlabRowB = kRowBytesB / kChunk;
constexpr int kRowsA = kProducers / kChunksRowA;
constexpr int kRowsB = kProducers / kChunksRowB;

static_assert(kStages >= 2, "a ring of one stage has nothing to run ahead into");
static_assert(kSharedBytes <= 227 * 1024, "the ring fits in shared memory");
static_assert(kBlockRows % kRowsA == 0 && kBlockCols % kRowsB == 0,
              "no thread has a part of a chunk");
static_assert(kRowsA % 8 == 0 && kRowsB == 4, "what the producers take for the swizzle's period");

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

using Cursor = sparsek::Cursor<kStages>;

}  // namespace

// One 128 x 256 tile of C.
extern "C" __global__ void __launch_bounds__(kThreads, 1)
    bsr_gemm_producers(const Element* __restrict__ values, const int* __restrict__ columns,
                       const int* __restrict__ row_offsets, const Element* __restrict__ b,
                       float* __restrict__ c, int n) {
  extern __shared__ __align__(128) unsigned char ring[];
  Barrier* const full = reinterpret_cast<Barrier*>(ring + kStages * kStageBytes);
  Barrier* const empty = full + kStages;

  // The same in all lanes, and known to be: what follows are branches of whole warps.
  const int warp = __shfl_sync(0xFFFFFFFFu, threadIdx.x / 32, 0);
  const int lane = threadIdx.x % 32;
  const int block_row = blockIdx.x;
  const int panel = blockIdx.y;
  const int first = row_offsets[block_row];
  const int last = row_offsets[block_row + 1];

  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      sparsek::barrier_init(full + stage, kProducers);
      sparsek::barrier_init(empty + stage, kConsumers);
    }
  }
  __syncthreads();

  if (warp < kProducerWarps) {
    // Producers. A thread's chunks lie in one column of chunks; from one to the next the swizzle of
    // A is the same, and that of B changes by its upper bit.
    const int thread = threadIdx.x;
    const int row_b = thread / kChunksRowB;
    const int column_b = thread % kChunksRowB;
    const int target_a = offset_a(thread / kChunksRowA, thread % kChunksRowA);
    const int target_b = kBytesA + column_b / kChunksSlabRowB * kSlabBytesB +
                         offset_b(row_b, column_b % kChunksSlabRowB);
    const Element* const source_a = values + thread * kChunkElements;
    const Element* const source_b =
        b + static_cast<std::size_t>(row_b) * n + column_b * kChunkElements;

    Cursor free;
    int column = first < last ? columns[first] : 0;
    for (int block = first; block < last; ++block, free.step()) {
      const Element* const block_a = source_a + static_cast<std::size_t>(block) * kBlockElements;
      const Element* block_b =
          source_b + static_cast<std::size_t>(column) * kBlockCols * n + panel * kTileN;
      // A step early, so that the addresses of the next copies need not wait for it.
      if (block + 1 < last) column = columns[block + 1];

      unsigned char* const stage = ring + free.stage * kStageBytes;
      // Wait for the consumers' release; the first round finds every stage free.
      sparsek::barrier_wait(empty + free.stage, free.parity ^ 1);
#pragma unroll
      for (int row = 0; row < kBlockRows; row += kRowsA) {
        sparsek::cp_async_16(stage + target_a + row * kRowBytesA, block_a + row * kBlockCols);
      }
#pragma unroll
      for (int row = 0; row < kBlockCols; row += kRowsB) {
        const int flip = SWIZZLE ? row % 8 * kChunk : 0;
        sparsek::cp_async_16(stage + (target_b ^ flip) + row * kRowBytesB, block_b);
        block_b += static_cast<std::size_t>(kRowsB) * n;
      }
      sparsek::cp_async_arrive(full + free.stage);
    }

  } else {
    // Consumers. Lane l points to row l % 16 of each 16x16 of an operand, its left or its right
    // chunk. The exclusive or comes after the sum with the stage: before it, the compiler would
    // keep an address for each chunk in a register, and there is none left.
    const int consumer = warp - kProducerWarps;
    const int warp_row = consumer / kConsumersN * kWarpTile;
    const int slab = consumer % kConsumersN;
    const std::uint32_t ring_address = sparsek::shared_address(ring);
    const std::uint32_t lane_a = ring_address + offset_a(warp_row + lane % 16, lane / 16);
    const std::uint32_t lane_b =
        ring_address + kBytesA + slab * kSlabBytesB + offset_b(lane % 16, lane / 16);

    Cursor next;
    float sums[kProductsM][kProductsN][4] = {};
    for (int block = first; block < last; ++block, next.step()) {
      const std::uint32_t stage = next.stage * kStageBytes;
      sparsek::barrier_wait(full + next.stage, next.parity);
#pragma unroll
      for (int k = 0; k < kProductsK; ++k) {
        std::uint32_t a[kProductsM][4];
#pragma unroll
        for (int i = 0; i < kProductsM; ++i) {
          const std::uint32_t rows = (lane_a + stage) ^ k * 2 * kChunk;
          sparsek::ldmatrix_x4(a[i], rows + i * kProductM * kRowBytesA);
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
      // Release, once all lanes have read the stage.
      __syncwarp();
      if (lane == 0) sparsek::barrier_arrive(empty + next.stage);
    }

    // Epilogue.
    const bool odd_lane = lane % 2 == 1;
    float* const lane_c =
        c + (static_cast<std::size_t>(block_row) * kBlockRows + warp_row + lane / 4) * n +
        panel * kTileN + slab * kWarpTile + lane % 2 * 8 + lane % 4 / 2 * 4;
    sparsek::store_tile(sums, lane_c, n, odd_lane);
  }
}

static void prepare() {
  SPARSEK_CUDA_CHECK(cudaFuncSetAttribute(
      bsr_gemm_producers, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
}

static void launch(const Operands& p) {
  const dim3 grid(p.m / kBlockRows, p.n / kTileN);
  bsr_gemm_producers<<<grid, kThreads, kSharedBytes>>>(p.values, p.columns, p.row_offsets, p.b, p.c,
                                                       p.n);
}

int main(int argc, char** argv) {
  return sparsek::run<sparsek::BsrGemm<kTileN>>(
      argc, argv, {"bsr_gemm_producers", nullptr, prepare, launch});
}
