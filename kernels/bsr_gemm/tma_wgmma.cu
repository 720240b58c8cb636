// Rung 6, bsr_gemm_tma_wgmma: the copies become bulk tensor copies that one thread starts, the
// products become WGMMA, and a thread block stays. It takes one block-row of A and keeps all of it
// in registers, so that only B streams, read from shared memory by the tensor cores themselves, and
// walks every second panel of C's columns. Two warp groups take turns: one multiplies while the
// other stores.
//
// What bounds it: shared memory. A tile's B is read by each warp group, and arrives, and C passes
// through: 512 KB a tile, 4,096 cycles of the bandwidth that the tensor cores need for their 4,096.
// With A in shared memory it would be a quarter more. Without the epilogue the tensor cores are
// busy for 89 % of the time, at the 1.5 GHz that their power leaves (ncu, H200, 2026-11-21).
//
// Thread block: a producer warp group, of which one thread works, and two consumers, each with 64
// rows of the tile of 128x128: A 64x512 in 128 registers a thread, C 64x128 in 64.
// Grid: 2 thread blocks a block-row. All walk the panels in the same order, so that a panel of B
// comes from L2 but for its first reader.
// Shared memory (dynamic): B STAGES x 32x128 fp16 (two halves of 64 columns, 128-byte swizzle), C
//   2 slabs of 64x32 fp32 a consumer (128-byte swizzle); 24 x 8,192 + 4 x 8,192 = 229,376 bytes,
//   the barriers, and up to 1,023 bytes to align.
// Barriers: full[stage] 1 arrival (the producer) and the bytes of the stage; the consumers wait.
//   empty[stage] 8 arrivals (the consumers' warps); the producer waits. turn[consumer] 4 arrivals
//   (the warps of the other, when the last product of its tile is issued). The ring holds a tile
//   and a half, so that one consumer may be a tile behind.
#include "../common/mbarrier.cuh"
#include "../common/registers.cuh"
#include "../common/tma.cuh"
#include "../common/wgmma.cuh"
#include "harness.cuh"

#ifndef STAGES
#define STAGES 24
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
constexpr int kTileN = 128;
constexpr int kWarpGroup = 128;
constexpr int kConsumers = 2;
constexpr int kThreads = (1 + kConsumers) * kWarpGroup;
constexpr int kProductM = 64;
constexpr int kProductK = 16;
constexpr int kProductsK = kBlockCols / kProductK;

constexpr int kSlabColumns = 64;  // of B, as wide as the swizzle
constexpr int kSlabs = kTileN / kSlabColumns;
constexpr int kSlabBytes = kBlockCols * kSlabColumns * static_cast<int>(sizeof(__half));
constexpr int kStageBytes = kSlabs * kSlabBytes;
constexpr int kGroupBytes = 8 * 128;                               // 8 k of a slab
constexpr int kProductBytes = kProductK / 8 * kGroupBytes;         // 16 k of a slab
constexpr int kOutColumns = 32;                                    // of C, a line of 128 bytes
constexpr int kOutBytes = kProductM * kOutColumns * static_cast<int>(sizeof(float));
constexpr int kOutSlabs = kTileN / kOutColumns;
constexpr int kOutBuffers = 2;

constexpr int kAlignment = 1024;  // of a 128-byte swizzle
constexpr int kBarriers = 2 * kStages + kConsumers;
constexpr int kSharedBytes = kStages * kStageBytes + kConsumers * kOutBuffers * kOutBytes +
                             kBarriers * static_cast<int>(sizeof(Barrier)) + kAlignment;

static_assert(kConsumers * kProductM == kBlockRows, "the consumers cover the rows");
static_assert(kStages > kMaxBlocks, "a consumer that waits for its turn must not stop the ring");
static_assert(kSharedBytes <= 227 * 1024, "the ring and the slabs fit in shared memory");

// Where the ring stands.
struct Cursor {
  int stage = 0;
  std::uint32_t parity = 0;

  __device__ __forceinline__ void step() {
    if (++stage < kStages) return;
    stage = 0;
    parity ^= 1;
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
      reinterpret_cast<Barrier*>(shared_c + kConsumers * kOutBuffers * kOutBytes);
  Barrier* const empty = full + kStages;
  Barrier* const turn = empty + kStages;

  // The same in all lanes, and known to be: what follows are branches of whole warps.
  const int warp_group = __shfl_sync(0xFFFFFFFFu, threadIdx.x / kWarpGroup, 0);
  const int lane = threadIdx.x % 32;
  const int block_row = blockIdx.y;
  const int first = row_offsets[block_row];
  const int blocks = row_offsets[block_row + 1] - first;
  const int panels = n / kTileN;

  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      sparsek::barrier_init(full + stage, 1);
      sparsek::barrier_init(empty + stage, kConsumers * kWarpGroup / 32);
    }
    for (int consumer = 0; consumer < kConsumers; ++consumer) {
      sparsek::barrier_init(turn + consumer, kWarpGroup / 32);
    }
    sparsek::barrier_init_fence();
  }
  __syncthreads();

  if (warp_group == 0) {
    // Producer.
    sparsek::keep_registers<24>();
    if (threadIdx.x == 0) {
      sparsek::tma_prefetch_map(&map_b);
      Cursor free;
      for (int panel = blockIdx.x; panel < panels; panel += kSplits) {
        for (int block = 0; block < blocks; ++block, free.step()) {
          const int row = columns[first + block] * kBlockCols;
          // Wait for the consumers' release; the first round finds every stage free.
          sparsek::barrier_wait(empty + free.stage, free.parity ^ 1);
          sparsek::barrier_arrive_expect(full + free.stage, kStageBytes);
#pragma unroll
          for (int slab = 0; slab < kSlabs; ++slab) {
            sparsek::tma_load(shared_b + free.stage * kStageBytes + slab * kSlabBytes, &map_b, row,
                              panel * kTileN + slab * kSlabColumns, full + free.stage);
          }
        }
      }
    }
  } else {
    // Consumers.
    sparsek::take_registers<240>();
    const int consumer = warp_group - 1;
    const bool leader = threadIdx.x % kWarpGroup == 0;
    const int row = threadIdx.x % kWarpGroup / 32 * 16 + lane / 4;
    const std::uint64_t operand_b = sparsek::operand_128(shared_b, kSlabBytes, kGroupBytes);

    // A, once and for all panels.
    std::uint32_t a[kMaxBlocks][kProductsK][4];
#pragma unroll
    for (int block = 0; block < kMaxBlocks; ++block) {
      const __half* const lane_a = values +
                                   static_cast<std::size_t>(first + block) * kBlockElements +
                                   (consumer * kProductM + row) * kBlockCols + lane % 4 * 2;
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

    // The first consumer goes first.
    if (consumer == 1 && lane == 0) sparsek::barrier_arrive(turn + 0);

    Cursor next, used;
    const auto release_two = [&] {
#pragma unroll
      for (int i = 0; i < 2; ++i, used.step()) {
        if (lane == 0) sparsek::barrier_arrive(empty + used.stage);
      }
    };
    std::uint32_t turn_parity = 0;
    for (int panel = blockIdx.x; panel < panels; panel += kSplits, turn_parity ^= 1) {
      float sums[64];
      sparsek::barrier_wait(turn + consumer, turn_parity);
#pragma unroll
      for (int block = 0; block < kMaxBlocks; block += 2) {
        if (block >= blocks) break;
        // Two blocks a group: nothing but products may stand between the first and the last.
        int stages[2];
#pragma unroll
        for (int i = 0; i < 2; ++i, next.step()) {
          sparsek::barrier_wait(full + next.stage, next.parity);
          stages[i] = next.stage;
        }
        sparsek::wgmma_fence();
#pragma unroll
        for (int i = 0; i < 2; ++i) {
#pragma unroll
          for (int k = 0; k < kProductsK; ++k) {
            sparsek::wgmma_m64n128k16(
                sums, a[block + i][k],
                sparsek::advance(operand_b, stages[i] * kStageBytes + k * kProductBytes),
                block + i + k > 0);
          }
        }
        sparsek::wgmma_commit();
        if (block > 0) {
          sparsek::wgmma_wait<1>();
          release_two();
        }
      }
      if (lane == 0) sparsek::barrier_arrive(turn + (1 - consumer));
      sparsek::wgmma_wait<0>();
      sparsek::wgmma_settle(sums);
      release_two();

      // Epilogue: slab by slab through shared memory and out as whole lines, so that L2 sees one
      // request for 128 bytes, and two slabs in turn: one is filled while the copy engine reads the
      // other.
      const bool odd_lane = lane % 2 == 1;
      const bool odd_row = row % 2 == 1;
#pragma unroll
      for (int slab = 0; slab < kOutSlabs; ++slab) {
        unsigned char* const out =
            shared_c + (consumer * kOutBuffers + slab % kOutBuffers) * kOutBytes;
        if (leader) sparsek::tma_store_wait_read<kOutBuffers - 1>();
        sparsek::named_barrier(1 + consumer, kWarpGroup);
        const float* const part = sums + slab * kOutColumns / 2;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          // A lane pair exchanges, so that each holds 16 bytes of one of two neighbouring groups of
          // 8 columns; odd rows begin with the other 64 bytes of the line. So the 8 lanes that
          // store at a time meet 8 different swizzled chunks.
          float4 vectors[2];
#pragma unroll
          for (int pair = 0; pair < 2; ++pair) {
            const float* const left = part + pair * 8 + half * 2;
            const float* const right = left + 4;
            const float x = __shfl_xor_sync(0xFFFFFFFFu, odd_lane ? left[0] : right[0], 1);
            const float y = __shfl_xor_sync(0xFFFFFFFFu, odd_lane ? left[1] : right[1], 1);
            vectors[pair] = odd_lane ? make_float4(x, y, right[0], right[1])
                                     : make_float4(left[0], left[1], x, y);
          }
          unsigned char* const out_row = out + (row + half * 8) * 128;
#pragma unroll
          for (int turn_of = 0; turn_of < 2; ++turn_of) {
            const int pair = odd_row ? 1 - turn_of : turn_of;
            const int chunk = (pair * 4 + lane % 2 * 2 + lane % 4 / 2) ^ row % 8;
            *reinterpret_cast<float4*>(out_row + chunk * 16) =
                odd_row ? vectors[1 - turn_of] : vectors[turn_of];
          }
        }
        sparsek::tma_store_fence();
        sparsek::named_barrier(1 + consumer, kWarpGroup);
        if (leader) {
          sparsek::tma_store(&map_c, block_row * kBlockRows + consumer * kProductM,
                             panel * kTileN + slab * kOutColumns, out);
          sparsek::tma_store_commit();
        }
      }
    }
    // The copy engine still reads shared memory, which must outlive it.
    if (leader) sparsek::tma_store_wait_read<0>();
  }
}

static void prepare() {
  SPARSEK_CUDA_CHECK(cudaFuncSetAttribute(
      bsr_gemm_tma_wgmma, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
}

// Blocks of a block-row; ends the process where the registers do not hold them, two by two.
static int supported_blocks(const Operands& p) {
  int offsets[2];
  SPARSEK_CUDA_CHECK(
      cudaMemcpy(offsets, p.row_offsets, sizeof offsets, cudaMemcpyDeviceToHost));
  const int blocks = offsets[1] - offsets[0];
  if (blocks > kMaxBlocks || blocks % 2 != 0) {
    sparsek::usage_error("--blocks-per-row " + std::to_string(blocks) +
                         " is not even and at most " + std::to_string(kMaxBlocks) +
                         ", what this kernel's registers hold");
  }
  return blocks;
}

static void launch(const Operands& p) {
  static const int blocks = supported_blocks(p);
  (void)blocks;
  const CUtensorMap map_b = sparsek::matrix_map(p.b, p.k, p.n, kBlockCols, kSlabColumns,
                                                CU_TENSOR_MAP_SWIZZLE_128B);
  const CUtensorMap map_c = sparsek::matrix_map(p.c, p.m, p.n, kProductM, kOutColumns,
                                                CU_TENSOR_MAP_SWIZZLE_128B);
  const dim3 grid(kSplits, p.m / kBlockRows);
  bsr_gemm_tma_wgmma<<<grid, kThreads, kSharedBytes>>>(p.values, map_b, map_c, p.columns,
                                                       p.row_offsets, p.n);
}

int main(int argc, char** argv) {
  return sparsek::run(argc, argv, {"bsr_gemm_tma_wgmma", kTileN, prepare, launch});
}
