// Rung 11, bsr_gemm_tma_wgmma: the products become WGMMA, whose B the tensor cores read from shared
// memory themselves. That leaves registers for one block-row of A, which a thread block keeps for
// all its tiles, so that only B streams. A tile is 64 columns wide, and two are in registers: while
// the products of one are under way, the one before is stored. What it gained: docs/ladder.md.
//
// What bounds it: the way of B and C through the L2, and power. In percent of its time, copies and
// stores without products take 86 %, products and copies without stores 88 %, products and stores
// without copies 79 %. The link between the two halves of the L2 is busy for 87 % of the time, and
// nothing else for more than 62 % (ncu). On zeros it takes 5 % less time, at 1.98 GHz and 585 W;
// random data is held to 1.5 GHz and less by the card's 700 W (H200, 2026-11-21).
//
// Thread block: a producer warp group, of which one thread works, and two consumers, each with 64
//   rows of the block-row: A 64x512 in 128 registers a thread, C 2 x 64x64 in 64.
// Grid: 2 thread blocks a block-row, each of which takes every second panel of 128 columns of C.
//   All walk the panels in the same order, so that a panel of B comes from L2 but for its first
//   reader.
// Shared memory (dynamic): B STAGES x 2 blocks of 32x64 fp16 (128-byte swizzle), C 4 slabs of
//   16x32 fp32 a consumer warp (128-byte swizzle, so that L2 sees whole lines); 16 x 8,192 +
//   8 x 4 x 2,048 = 196,608 bytes, the barriers, and up to 1,023 bytes to align.
// Barriers: full[stage] 1 arrival (the producer) and the bytes of the stage; the consumers wait.
//   empty[stage] 8 arrivals (the consumers' warps, when their products of the stage have ended);
//   the producer waits. Each warp stores its own rows: no barrier joins the warps of a group.
#include "../common/mbarrier.cuh"
#include "../common/quad.cuh"
#include "../common/registers.cuh"
#include "../common/ring.cuh"
#include "../common/tma.cuh"
#include "../common/wgmma.cuh"
#include "harness.cuh"

#ifndef STAGES
#define STAGES 16
#endif

namespace {

using sparsek::Barrier;
using sparsek::kBlockCols;
using sparsek::kBlockElements;
using sparsek::kBlockRows;
using sparsek::Operands;

constexpr int kStages = STAGES;
constexpr int kMaxBlocks = 16;  // of a block-row, as many as the registers hold
constexpr int kSplits = 2;      // thread blocks of a block-row
constexpr int kWarpGroup = 128;
constexpr int kConsumers = 2;
constexpr int kConsumerWarps = kConsumers * kWarpGroup / 32;
constexpr int kThreads = (1 + kConsumers) * kWarpGroup;

constexpr int kPanelN = 128;  // of C's columns, taken in turns by the thread blocks of a block-row
constexpr int kTileN = 64;    // of a panel, as wide as the swizzle of B
constexpr int kTiles = kPanelN / kTileN;
constexpr int kProductM = 64;
constexpr int kProductK = 16;
constexpr int kProductsK = kBlockCols / kProductK;

constexpr int kStageBlocks = 2;  // of A, whose products are one group
constexpr int kGroups = kMaxBlocks / kStageBlocks;
constexpr int kBlockBytes = kBlockCols * kTileN * static_cast<int>(sizeof(__half));
constexpr int kStageBytes = kStageBlocks * kBlockBytes;
constexpr int kEightRowsBytes = 8 * 128;                        // 8 k of a block
constexpr int kProductBytes = kProductK / 8 * kEightRowsBytes;  // 16 k of a block

constexpr int kSlabRows = 16;     // of C, those of a warp
constexpr int kSlabColumns = 32;  // a line of 128 bytes
constexpr int kSlabBytes = kSlabRows * kSlabColumns * static_cast<int>(sizeof(float));
constexpr int kSlabs = kTileN / kSlabColumns;
constexpr int kSlabBuffers = 4;
constexpr int kMinBlocks = (1 + kSlabs) * kStageBlocks;  // the slabs go after groups 1 and 2

constexpr int kAlignment = 1024;  // of a 128-byte swizzle
constexpr int kBarriers = 2 * kStages;
constexpr int kSharedBytes = kStages * kStageBytes + kConsumerWarps * kSlabBuffers * kSlabBytes +
                             kBarriers * static_cast<int>(sizeof(Barrier)) + kAlignment;

static_assert(kConsumers * kProductM == kBlockRows, "the consumers cover the rows");
static_assert(kStages >= 2, "a stage is released only after the next one has come");
static_assert(kTiles == 2, "two tiles in registers, one under way, one to be stored");
static_assert(kSharedBytes <= 227 * 1024, "the ring and the slabs fit in shared memory");

using Cursor = sparsek::Cursor<kStages>;

// A warp's way out for C: slab by slab through shared memory, and out as whole lines.
struct Output {
  const CUtensorMap* map;
  unsigned char* buffers;  // kSlabBuffers slabs
  int row;                 // of C, the warp's first
  int lane;
  int buffer = 0;  // the next

  // Slab `slab` of a tile whose first column is `column`.
  template <int Slab>
  __device__ __forceinline__ void store(const float (&sums)[32], int column) {
    unsigned char* const slab = buffers + buffer * kSlabBytes;
    // Wait until the copy engine has read what lay there.
    if (lane == 0) sparsek::tma_store_wait_read<kSlabBuffers - 1>();
    __syncwarp();

    const int lane_row = lane / 4;
    const bool odd_lane = lane % 2 == 1;
    const bool odd_row = lane_row % 2 == 1;
    const float* const part = sums + Slab * (kSlabColumns / 2);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      // A lane pair exchanges, so that each holds 16 bytes of one of two neighbouring groups of 8
      // columns; odd rows begin with the other 64 bytes of the line. So the 8 lanes that store at
      // a time meet 8 different swizzled chunks.
      float4 vectors[2];
#pragma unroll
      for (int pair = 0; pair < 2; ++pair) {
        const float* const left = part + pair * 8 + half * 2;
        const float* const right = left + 4;
        vectors[pair] = sparsek::pair_exchange(left, right, odd_lane);
      }
      unsigned char* const line = slab + (lane_row + half * 8) * 128;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int pair = odd_row ? 1 - i : i;
        const int chunk = (pair * 4 + lane % 2 * 2 + lane % 4 / 2) ^ lane_row;
        *reinterpret_cast<float4*>(line + chunk * 16) = odd_row ? vectors[1 - i] : vectors[i];
      }
    }

    sparsek::async_proxy_fence();
    __syncwarp();
    if (lane == 0) {
      sparsek::tma_store(map, row, column + Slab * kSlabColumns, slab);
      sparsek::tma_store_commit();
    }
    buffer = (buffer + 1) % kSlabBuffers;
  }
};

}  // namespace

// One block-row of C, every kSplits-th panel.
extern "C" __global__ void __launch_bounds__(kThreads, 1)
    bsr_gemm_tma_wgmma(const __half* __restrict__ values,
                       const __grid_constant__ CUtensorMap map_b,
                       const __grid_constant__ CUtensorMap map_c, const int* __restrict__ columns,
                       const int* __restrict__ row_offsets, int n) {
  extern __shared__ unsigned char shared[];
  const std::uint32_t misaligned = sparsek::shared_address(shared) % kAlignment;
  unsigned char* const shared_b = shared + (kAlignment - misaligned) % kAlignment;
  unsigned char* const shared_c = shared_b + kStages * kStageBytes;
  Barrier* const full =
      reinterpret_cast<Barrier*>(shared_c + kConsumerWarps * kSlabBuffers * kSlabBytes);
  Barrier* const empty = full + kStages;

  // The same in all lanes, and known to be: what follows are branches of whole warps.
  const int warp = __shfl_sync(0xFFFFFFFFu, threadIdx.x / 32, 0);
  const int lane = threadIdx.x % 32;
  const int block_row = blockIdx.y;
  const int first = row_offsets[block_row];
  const int blocks = row_offsets[block_row + 1] - first;
  const int panels = n / kPanelN;

  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      sparsek::barrier_init(full + stage, 1);
      sparsek::barrier_init(empty + stage, kConsumerWarps);
    }
    sparsek::barrier_init_fence();
  }
  __syncthreads();

  if (warp < kWarpGroup / 32) {
    // Producer.
    sparsek::keep_registers<24>();
    if (threadIdx.x == 0) {
      sparsek::tma_prefetch_map(&map_b);
      Cursor free;
      for (int panel = blockIdx.x; panel < panels; panel += kSplits) {
        for (int tile = 0; tile < kTiles; ++tile) {
          for (int block = 0; block < blocks; block += kStageBlocks, free.step()) {
            // Wait for the consumers' release; the first round finds every stage free.
            sparsek::barrier_wait(empty + free.stage, free.parity ^ 1);
            sparsek::barrier_arrive_expect(full + free.stage, kStageBytes);
#pragma unroll
            for (int i = 0; i < kStageBlocks; ++i) {
              const int row = columns[first + block + i] * kBlockCols;
              sparsek::tma_load(shared_b + free.stage * kStageBytes + i * kBlockBytes, &map_b, row,
                                panel * kPanelN + tile * kTileN, full + free.stage);
            }
          }
        }
      }
    }
  } else {
    // Consumers.
    sparsek::take_registers<240>();
    const int consumer_warp = warp - kWarpGroup / 32;
    const int first_row = consumer_warp * kSlabRows;
    // A block is one swizzle wide: the lead, to the next 64 columns, is never used.
    const std::uint64_t operand_b = sparsek::operand_128(shared_b, 0, kEightRowsBytes);

    // A, once and for all panels.
    std::uint32_t a[kMaxBlocks][kProductsK][4];
#pragma unroll
    for (int block = 0; block < kMaxBlocks; ++block) {
      const __half* const lane_a = values +
                                   static_cast<std::size_t>(first + block) * kBlockElements +
                                   (first_row + lane / 4) * kBlockCols + lane % 4 * 2;
#pragma unroll
      for (int k = 0; k < kProductsK; ++k) {
#pragma unroll
        for (int part = 0; part < 4; ++part) {
          const __half* const pair =
              lane_a + part % 2 * 8 * kBlockCols + k * kProductK + part / 2 * 8;
          a[block][k][part] = block < blocks ? *reinterpret_cast<const std::uint32_t*>(pair) : 0u;
        }
      }
    }

    Output output{&map_c, shared_c + consumer_warp * kSlabBuffers * kSlabBytes,
                  block_row * kBlockRows + first_row, lane};
    float sums[kTiles][32];
    Cursor next;
    int released = 0;  // the stage whose products end next
    int stored = -1;   // first column of the tile before; negative: there is none
    for (int panel = blockIdx.x; panel < panels; panel += kSplits) {
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        const float(&before)[32] = sums[1 - tile];
#pragma unroll
        for (int group = 0; group < kGroups; ++group) {
          if (group * kStageBlocks >= kMinBlocks && group * kStageBlocks >= blocks) break;
          sparsek::barrier_wait(full + next.stage, next.parity);
          // Nothing but products may stand between the first and the last of a group.
          sparsek::wgmma_fence();
#pragma unroll
          for (int i = 0; i < kStageBlocks; ++i) {
#pragma unroll
            for (int k = 0; k < kProductsK; ++k) {
              sparsek::wgmma_m64n64k16<sparsek::Major::kColumns>(
                  sums[tile], a[group * kStageBlocks + i][k],
                  sparsek::advance(operand_b, next.stage * kStageBytes + i * kBlockBytes +
                                                  k * kProductBytes),
                  group + i + k > 0);
            }
          }
          sparsek::wgmma_commit();
          if (group > 0) {
            // The group before has ended; this one keeps the tensor cores busy meanwhile.
            sparsek::wgmma_wait<1>();
            if (lane == 0) sparsek::barrier_arrive(empty + released);
          }
          released = next.stage;
          next.step();

          // Epilogue of the tile before.
          if (group == 1 && stored >= 0) output.store<0>(before, stored);
          if (group == 2 && stored >= 0) output.store<1>(before, stored);
        }
        sparsek::wgmma_wait<0>();
        sparsek::wgmma_settle(sums[tile]);
        if (lane == 0) sparsek::barrier_arrive(empty + released);
        stored = panel * kPanelN + tile * kTileN;
      }
    }
    if (stored >= 0) {
      output.store<0>(sums[kTiles - 1], stored);
      output.store<1>(sums[kTiles - 1], stored);
    }
    // The copy engine still reads shared memory, which must outlive it.
    if (lane == 0) sparsek::tma_store_wait_read<0>();
  }
}

static void prepare() {
  SPARSEK_CUDA_CHECK(cudaFuncSetAttribute(
      bsr_gemm_tma_wgmma, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
}

// Ends the process where one of the block-rows has not a number of blocks that fits the registers:
// fewer than kMinBlocks never end, and an odd last block reads beyond `columns`.
static void require_supported_rows(const Operands& p) {
  for (int row = 0; row < p.m / kBlockRows; ++row) {
    const int blocks = p.host_row_offsets[row + 1] - p.host_row_offsets[row];
    if (blocks >= kMinBlocks && blocks <= kMaxBlocks && blocks % kStageBlocks == 0) continue;
    sparsek::usage_error("block-row " + std::to_string(row) + " has " + std::to_string(blocks) +
                         " blocks (--blocks-per-row, --irregular): this kernel's registers take an "
                         "even number from " +
                         std::to_string(kMinBlocks) + " to " + std::to_string(kMaxBlocks));
  }
}

static void launch(const Operands& p) {
  require_supported_rows(p);
  sparsek::require_multiple_of_16(p.b, "B");
  sparsek::require_multiple_of_16(p.c, "C");
  const CUtensorMap map_b = sparsek::matrix_map(p.b, p.k, p.n, kBlockCols, kTileN,
                                                CU_TENSOR_MAP_SWIZZLE_128B);
  const CUtensorMap map_c = sparsek::matrix_map(p.c, p.m, p.n, kSlabRows, kSlabColumns,
                                                CU_TENSOR_MAP_SWIZZLE_128B);
  const dim3 grid(kSplits, p.m / kBlockRows);
  bsr_gemm_tma_wgmma<<<grid, kThreads, kSharedBytes>>>(p.values, map_b, map_c, p.columns,
                                                       p.row_offsets, p.n);
}

int main(int argc, char** argv) {
  return sparsek::run<sparsek::BsrGemm<kPanelN>>(
      argc, argv, {"bsr_gemm_tma_wgmma", nullptr, prepare, launch});
}
