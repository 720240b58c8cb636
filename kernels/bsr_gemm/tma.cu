// Rung 10, bsr_gemm_tma: bulk tensor copies take over from the producer warps. One thread asks for
// whole boxes of A and B; addresses and swizzle are the copy engine's work, and the bytes that have
// come are counted at the stage's barrier. So what 128 threads did beside the products, with a
// fifth of all instructions and a part of the load/store pipe's time, is gone. C leaves by the
// engine too, in whole 128-byte lines, through two small boxes of shared memory a warp: one is
// filled while the engine reads the other. (A profiler's counts of store instructions do not see
// it.) What it gained: docs/ladder.md.
//
// What it teaches: the copy engine stands outside the order that threads keep among themselves. A
// warp's arrival at empty[stage] may reach the producer before the warp's last ldmatrix has read,
// so each lane fences first. The rung before needs no such fence: cp.async counts as an ordinary
// access.
//
// What bounds it, in percent of its time: the products alone take 76 %, with neither copies nor
// epilogue. All but the copies of A and B takes 85 %, and so does all but the stores of C (trials
// on an H200, 2026-11-21).
//
// Thread block: a producer warp group, of which one thread works and which keeps 24 registers a
//   thread; 2x4 consumer warps, 240, each with 64x64 of the tile's 128x256.
// Shared memory (dynamic): STAGES x (A 128x32 fp16, 64-byte swizzle; B 4 slabs of 32x64 fp16,
//   128-byte swizzle), C 2 boxes of 16x32 fp32 a consumer (128-byte swizzle); 8 x 24,576 +
//   16 x 2,048 = 229,376 bytes, and the barriers.
// Barriers: full[stage] 1 arrival (the producer) and the bytes of the stage; the consumers wait.
//   empty[stage] 8 arrivals (the consumer warps, when they have read it); the producer waits.
// Grid: one thread block a multiprocessor, less those that would idle in the last round. Tiles are
//   counted down the block-rows, so that those under way at a time share a panel of B.
#include "../common/grid.cuh"
#include "../common/mbarrier.cuh"
#include "../common/mma.cuh"
#include "../common/registers.cuh"
#include "../common/ring.cuh"
#include "../common/tma.cuh"
#include "harness.cuh"

#ifndef STAGES
#define STAGES 8
#endif
#ifndef SWIZZLE
#define SWIZZLE 1
#endif

namespace {

using sparsek::Barrier;
using sparsek::kBlockCols;
using sparsek::kBlockRows;
using sparsek::Operands;

constexpr int kStages = STAGES;
constexpr int kTileN = 256;
constexpr int kWarpTile = 64;  // of C, rows and columns
constexpr int kProducerWarps = 4;
constexpr int kProducerThreads = 32 * kProducerWarps;
constexpr int kConsumersN = kTileN / kWarpTile;
constexpr int kConsumers = kBlockRows / kWarpTile * kConsumersN;  // warps
constexpr int kThreads = kProducerThreads + 32 * kConsumers;
constexpr int kProducerRegisters = 24;
constexpr int kConsumerRegisters = 240;
constexpr int kProductM = 16;
constexpr int kProductN = 8;
constexpr int kProductK = 16;
constexpr int kProductsM = kWarpTile / kProductM;
constexpr int kProductsN = kWarpTile / kProductN;
constexpr int kProductsK = kBlockCols / kProductK;

constexpr int kChunk = 16;  // bytes, what a swizzle moves
constexpr int kRowBytesA = kBlockCols * static_cast<int>(sizeof(__half));
constexpr int kRowBytesB = kWarpTile * static_cast<int>(sizeof(__half));
constexpr int kBytesA = kBlockRows * kRowBytesA;
constexpr int kSlabBytesB = kBlockCols * kRowBytesB;
constexpr int kStageBytes = kBytesA + kConsumersN * kSlabBytesB;
constexpr int kOutRows = kProductM;
constexpr int kOutColumns = 32;  // a line of 128 bytes
constexpr int kOutRowBytes = kOutColumns * static_cast<int>(sizeof(float));
constexpr int kOutBytes = kOutRows * kOutRowBytes;
constexpr int kOutBuffers = 2;
constexpr int kOutProducts = kOutColumns / kProductN;  // side by side in a box
constexpr int kSharedBytes = kStages * kStageBytes + kConsumers * kOutBuffers * kOutBytes +
                             2 * kStages * static_cast<int>(sizeof(Barrier));

static_assert(kStages >= 2, "a ring of one stage has nothing to run ahead into");
static_assert(kSharedBytes <= 227 * 1024, "the ring and the boxes of C fit in shared memory");
static_assert(kProducerRegisters * kProducerThreads +
                      kConsumerRegisters * (kThreads - kProducerThreads) <=
                  65536 / kThreads / 8 * 8 * kThreads,
              "the consumers take no more than the thread block has");
static_assert(kStageBytes % 1024 == 0 && kOutBytes % 1024 == 0, "swizzles start anew in each box");

// Where a swizzle lays a chunk: A's rows are 64 bytes, those of B's slabs 128.
__device__ __forceinline__ int offset_a(int row, int chunk) {
  return row * kRowBytesA + (SWIZZLE ? chunk ^ row / 2 % 4 : chunk) * kChunk;
}
__device__ __forceinline__ int offset_b(int row, int chunk) {
  return row * kRowBytesB + (SWIZZLE ? chunk ^ row % 8 : chunk) * kChunk;
}

using Cursor = sparsek::Cursor<kStages>;

}  // namespace

// Every gridDim.x-th 128 x 256 tile of C.
extern "C" __global__ void __launch_bounds__(kThreads, 1)
    bsr_gemm_tma(const __grid_constant__ CUtensorMap map_a,
                 const __grid_constant__ CUtensorMap map_b,
                 const __grid_constant__ CUtensorMap map_c, const int* __restrict__ columns,
                 const int* __restrict__ row_offsets, int block_rows, int tiles) {
  extern __shared__ __align__(1024) unsigned char ring[];
  unsigned char* const out = ring + kStages * kStageBytes;
  Barrier* const full = reinterpret_cast<Barrier*>(out + kConsumers * kOutBuffers * kOutBytes);
  Barrier* const empty = full + kStages;

  // The same in all lanes, and known to be: what follows are branches of whole warps.
  const int warp = __shfl_sync(0xFFFFFFFFu, threadIdx.x / 32, 0);
  const int lane = threadIdx.x % 32;

  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      sparsek::barrier_init(full + stage, 1);
      sparsek::barrier_init(empty + stage, kConsumers);
    }
    sparsek::barrier_init_fence();
  }
  __syncthreads();

  if (warp < kProducerWarps) {
    // Producer.
    sparsek::keep_registers<kProducerRegisters>();
    if (threadIdx.x == 0) {
      sparsek::tma_prefetch_map(&map_a);
      sparsek::tma_prefetch_map(&map_b);
      Cursor free;
      for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int block_row = tile % block_rows;
        const int panel = tile / block_rows;
        const int last = row_offsets[block_row + 1];
#pragma unroll 1
        for (int block = row_offsets[block_row]; block < last; ++block, free.step()) {
          const int row = columns[block] * kBlockCols;
          unsigned char* const stage = ring + free.stage * kStageBytes;
          // Wait for the consumers' release; the first round finds every stage free.
          sparsek::barrier_wait(empty + free.stage, free.parity ^ 1);
          sparsek::barrier_arrive_expect(full + free.stage, kStageBytes);
          sparsek::tma_load(stage, &map_a, block * kBlockRows, 0, full + free.stage);
#pragma unroll
          for (int slab = 0; slab < kConsumersN; ++slab) {
            sparsek::tma_load(stage + kBytesA + slab * kSlabBytesB, &map_b, row,
                              panel * kTileN + slab * kWarpTile, full + free.stage);
          }
        }
      }
    }
  } else {
    // Consumers.
    sparsek::take_registers<kConsumerRegisters>();
    const int consumer = warp - kProducerWarps;
    const int warp_row = consumer / kConsumersN * kWarpTile;
    const int slab = consumer % kConsumersN;

    // Operands of one product step, for all of the warp's tile: lane l points to row l % 16 of each
    // 16x16, its left or its right chunk.
    std::uint32_t a[kProductsK][kProductsM][4];
    std::uint32_t b_pairs[kProductsK][kProductsN / 2][4];
    const std::uint32_t ring_address = sparsek::shared_address(ring);
    const std::uint32_t lane_a = ring_address + offset_a(warp_row + lane % 16, lane / 16);
    const std::uint32_t lane_b =
        ring_address + kBytesA + slab * kSlabBytesB + offset_b(lane % 16, lane / 16);
    const auto load = [&](int stage, int k) {
      const std::uint32_t stage_a = (lane_a ^ k * 2 * kChunk) + stage * kStageBytes;
      const std::uint32_t stage_b = stage * kStageBytes + k * kProductK * kRowBytesB;
#pragma unroll
      for (int i = 0; i < kProductsM; ++i) {
        sparsek::ldmatrix_x4(a[k][i], stage_a + i * kProductM * kRowBytesA);
      }
#pragma unroll
      for (int pair = 0; pair < kProductsN / 2; ++pair) {
        sparsek::ldmatrix_x4_trans(b_pairs[k][pair], (lane_b ^ pair * 2 * kChunk) + stage_b);
      }
    };

    Cursor next;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
      const int block_row = tile % block_rows;
      const int panel = tile / block_rows;
      const int blocks = row_offsets[block_row + 1] - row_offsets[block_row];

      float sums[kProductsM][kProductsN][4] = {};
      const auto multiply = [&](int k) {
#pragma unroll
        for (int i = 0; i < kProductsM; ++i) {
#pragma unroll
          for (int j = 0; j < kProductsN; ++j) {
            const std::uint32_t* const b_part = b_pairs[k][j / 2] + j % 2 * 2;
            sparsek::mma_m16n8k16(sums[i][j], a[k][i], b_part[0], b_part[1]);
          }
        }
      };

      if (blocks > 0) {
        sparsek::barrier_wait(full + next.stage, next.parity);
        load(next.stage, 0);
      }
      for (int block = 0; block < blocks; ++block) {
        const int stage = next.stage;
        next.step();
        load(stage, 1);
        multiply(0);
        // Release: all lanes have read the stage, and the copy engine must see it so.
        sparsek::async_proxy_fence();
        __syncwarp();
        if (lane == 0) sparsek::barrier_arrive(empty + stage);
        if (block + 1 < blocks) {
          sparsek::barrier_wait(full + next.stage, next.parity);
          load(next.stage, 0);
        }
        multiply(1);
      }

      // Epilogue. Odd rows store the two halves of a box's columns in the other order, so that the
      // 4 rows that store at a time meet 8 different chunks. C is not read again here.
      const bool odd_row = lane / 4 % 2 == 1;
#pragma unroll
      for (int i = 0; i < kProductsM; ++i) {
#pragma unroll
        for (int column = 0; column < kWarpTile; column += kOutColumns) {
          const int buffer = column / kOutColumns % kOutBuffers;
          unsigned char* const box = out + (consumer * kOutBuffers + buffer) * kOutBytes;
          // Wait until the engine has read what this box held before.
          if (lane == 0) sparsek::tma_store_wait_read<kOutBuffers - 1>();
          __syncwarp();
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            unsigned char* const row = box + (half * 8 + lane / 4) * kOutRowBytes;
#pragma unroll
            for (int j = 0; j < kOutProducts; ++j) {
              const int other_j = j ^ kOutProducts / 2;
              const float* const sum = sums[i][column / kProductN + j] + half * 2;
              const float* const other = sums[i][column / kProductN + other_j] + half * 2;
              const int chunk = (odd_row ? other_j : j) * 2 + lane % 4 / 2;
              *reinterpret_cast<float2*>(row + (chunk ^ lane / 4) * kChunk + lane % 2 * 8) =
                  odd_row ? make_float2(other[0], other[1]) : make_float2(sum[0], sum[1]);
            }
          }
          sparsek::async_proxy_fence();
          __syncwarp();
          if (lane == 0) {
            sparsek::tma_store_hinted(
                &map_c, block_row * kBlockRows + warp_row + i * kOutRows,
                panel * kTileN + slab * kWarpTile + column, box, sparsek::policy_evict_first());
            sparsek::tma_store_commit();
          }
        }
      }
    }
    // The copy engine still reads shared memory, which must outlive it.
    if (lane == 0) sparsek::tma_store_wait_read<0>();
  }
}

static void prepare() {
  SPARSEK_CUDA_CHECK(cudaFuncSetAttribute(
      bsr_gemm_tma, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
}

static void launch(const Operands& p) {
  sparsek::require_multiple_of_16(p.values, "the blocks of A");
  sparsek::require_multiple_of_16(p.b, "B");
  sparsek::require_multiple_of_16(p.c, "C");
  static const int resident = sparsek::multiprocessors();
  const int block_rows = p.m / kBlockRows;
  const int tiles = block_rows * (p.n / kTileN);
  constexpr auto swizzle_a = SWIZZLE ? CU_TENSOR_MAP_SWIZZLE_64B : CU_TENSOR_MAP_SWIZZLE_NONE;
  constexpr auto swizzle_b = SWIZZLE ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE;
  // As many rows of A's values as the shape could have; the copies stay in those that there are.
  const std::uint64_t most_rows = static_cast<std::uint64_t>(p.m) * (p.k / kBlockCols);
  const CUtensorMap map_a =
      sparsek::matrix_map(p.values, most_rows, kBlockCols, kBlockRows, kBlockCols, swizzle_a);
  const CUtensorMap map_b =
      sparsek::matrix_map(p.b, p.k, p.n, kBlockCols, kWarpTile, swizzle_b);
  const CUtensorMap map_c =
      sparsek::matrix_map(p.c, p.m, p.n, kOutRows, kOutColumns, CU_TENSOR_MAP_SWIZZLE_128B);
  bsr_gemm_tma<<<sparsek::persistent_grid(tiles, resident), kThreads, kSharedBytes>>>(
      map_a, map_b, map_c, p.columns, p.row_offsets, block_rows, tiles);
}

int main(int argc, char** argv) {
  return sparsek::run<sparsek::BsrGemm<kTileN>>(
      argc, argv, {"bsr_gemm_tma", nullptr, prepare, launch});
}
