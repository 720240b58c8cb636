// Rung 2, attention_causal_wgmma: the products become WGMMA, which reads Q, K and V from shared
// memory itself, and the copies bulk tensor copies by a warp group of its own. Two warp groups
// share the tiles of keys and values, 64 queries each: while one is in its softmax, the other may
// multiply. What it gained: docs/ladder.md.
//
// Thread block: a producer warp group, of which one thread works, and two consumers of 64 queries.
// Grid: x the tiles of 128 queries, y the heads.
// Shared memory (dynamic): Q 128 x 128 bf16 and STAGES x (K and V 128 x 128 bf16), with a 128-byte
//   swizzle; 32,768 + 2 x 65,536 bytes, 9 barriers, and up to 1,023 bytes to align.
// Registers: 24 a thread of the producer, 240 of the consumers (a tile's scores 64, its weights 32,
//   the output 64).
// Barriers: full_q 1 arrival (the producer) and the bytes of Q, used once. full_k and full_v[stage]
//   1 arrival (the producer) and the bytes; the consumers wait. empty_k and empty_v[stage] 8
//   arrivals (the consumers' warps, when their products of the tile have ended); the producer
//   waits.
#include "../common/harness.cuh"
#include "../common/mbarrier.cuh"
#include "../common/registers.cuh"
#include "../common/tma.cuh"
#include "../common/wgmma.cuh"
#include "problem.cuh"
#include "rows.cuh"
#include "tiles.cuh"

#ifndef STAGES
#define STAGES 2
#endif

namespace {

using sparsek::AttentionCausalOperands;
using sparsek::Barrier;
using sparsek::kAlignment;
using sparsek::kFeatures;
using sparsek::kGroupRows;
using sparsek::kOutSteps;
using sparsek::kRowBytes;
using sparsek::kScores;
using sparsek::kSums;
using sparsek::kTileBytes;
using sparsek::kTileRows;

constexpr int kStages = STAGES;
constexpr int kWarpGroup = 128;
constexpr int kConsumers = 2;
constexpr int kConsumerWarps = kConsumers * kWarpGroup / 32;
constexpr int kThreads = (1 + kConsumers) * kWarpGroup;
constexpr int kBarriers = 1 + 4 * kStages;
constexpr int kSharedBytes = (1 + 2 * kStages) * kTileBytes +
                             kBarriers * static_cast<int>(sizeof(Barrier)) + kAlignment;

static_assert(kStages >= 2, "a ring of one stage has nothing to run ahead into");
static_assert(kConsumers * kGroupRows == kTileRows, "the diagonal is in one tile of keys");
static_assert(kSharedBytes <= 227 * 1024, "Q and the ring fit in shared memory");

using Cursor = sparsek::Cursor<kStages>;

}  // namespace

// 128 queries of one head.
extern "C" __global__ void __launch_bounds__(kThreads, 1)
    attention_causal_wgmma(const __grid_constant__ CUtensorMap map,
                           __nv_bfloat16* __restrict__ out, int sequence, int group) {
  extern __shared__ unsigned char shared[];
  const std::uint32_t misaligned = sparsek::shared_address(shared) % kAlignment;
  unsigned char* const shared_q = shared + (kAlignment - misaligned) % kAlignment;
  unsigned char* const shared_k = shared_q + kTileBytes;
  unsigned char* const shared_v = shared_k + kStages * kTileBytes;
  Barrier* const full_q = reinterpret_cast<Barrier*>(shared_v + kStages * kTileBytes);
  Barrier* const full_k = full_q + 1;
  Barrier* const full_v = full_k + kStages;
  Barrier* const empty_k = full_v + kStages;
  Barrier* const empty_v = empty_k + kStages;

  // The same in all lanes, and known to be: what follows are branches of whole warps.
  const int warp = __shfl_sync(0xFFFFFFFFu, threadIdx.x / 32, 0);
  const int lane = threadIdx.x % 32;
  const int head = blockIdx.y;
  const int tile = blockIdx.x;  // of queries
  const int tiles = tile + 1;  // of keys
  const int first_row = head * sequence + tile * kTileRows;

  if (threadIdx.x == 0) {
    sparsek::barrier_init(full_q, 1);
    for (int stage = 0; stage < kStages; ++stage) {
      sparsek::barrier_init(full_k + stage, 1);
      sparsek::barrier_init(full_v + stage, 1);
      sparsek::barrier_init(empty_k + stage, kConsumerWarps);
      sparsek::barrier_init(empty_v + stage, kConsumerWarps);
    }
    sparsek::barrier_init_fence();
  }
  __syncthreads();

  if (warp < kWarpGroup / 32) {
    // Producer. From the diagonal back to the first keys.
    sparsek::keep_registers<24>();
    if (threadIdx.x == 0) {
      // Rows of the map: Q, K, V.
      const int kv_heads = static_cast<int>(gridDim.y) / group;
      const int last_k = (static_cast<int>(gridDim.y) + head / group) * sequence + tile * kTileRows;
      const int last_v = last_k + kv_heads * sequence;
      Cursor free_k, free_v;
      // Waits for the consumers' release; the first round finds every stage free.
      const auto load_k = [&](int turn) {
        sparsek::barrier_wait(empty_k + free_k.stage, free_k.parity ^ 1);
        sparsek::load_tile(shared_k + free_k.stage * kTileBytes, &map, last_k - turn * kTileRows,
                           full_k + free_k.stage);
        free_k.step();
      };
      const auto load_v = [&](int turn) {
        sparsek::barrier_wait(empty_v + free_v.stage, free_v.parity ^ 1);
        sparsek::load_tile(shared_v + free_v.stage * kTileBytes, &map, last_v - turn * kTileRows,
                           full_v + free_v.stage);
        free_v.step();
      };
      sparsek::load_tile(shared_q, &map, first_row, full_q);
      for (int turn = 0; turn < tiles; ++turn) {
        load_k(turn);
        load_v(turn);
      }
    }
  } else {
    // Consumers.
    sparsek::take_registers<240>();
    const int consumer = warp / 4 - 1;
    const std::uint64_t queries =
        sparsek::operand_rows(shared_q + consumer * kGroupRows * kRowBytes);
    const std::uint64_t keys = sparsek::operand_rows(shared_k);
    const std::uint64_t values = sparsek::operand_values(shared_v);
    const int row = consumer * kGroupRows + warp % 4 * 16 + lane / 4;

    float scores[kScores];
    std::uint32_t weights[kOutSteps][4];
    float sums[kSums] = {};
    sparsek::RunningSoftmax softmax;
    Cursor next_k, next_v;
    sparsek::barrier_wait(full_q, 0);
    for (int turn = 0; turn < tiles; ++turn) {
      sparsek::barrier_wait(full_k + next_k.stage, next_k.parity);
      sparsek::start_scores(scores, queries, sparsek::advance(keys, next_k.stage * kTileBytes));
      sparsek::wgmma_wait<0>();
      sparsek::wgmma_settle(scores);
      if (lane == 0) sparsek::barrier_arrive(empty_k + next_k.stage);
      next_k.step();

      if (turn == 0) sparsek::mask_above_diagonal(scores, row);
      softmax.weigh(scores);
      softmax.rescale(sums);
      sparsek::pack_weights(scores, weights);

      sparsek::barrier_wait(full_v + next_v.stage, next_v.parity);
      sparsek::start_sums(sums, weights, sparsek::advance(values, next_v.stage * kTileBytes));
      sparsek::wgmma_wait<0>();
      sparsek::wgmma_settle(sums);
      if (lane == 0) sparsek::barrier_arrive(empty_v + next_v.stage);
      next_v.step();
    }

    sparsek::store_rows(out + static_cast<std::size_t>(first_row + row) * kFeatures, sums, softmax);
  }
}

static void require(const sparsek::AttentionCausalShape& shape) {
  shape.require_sequence_of(kTileRows);
}

static void prepare() {
  SPARSEK_CUDA_CHECK(cudaFuncSetAttribute(
      attention_causal_wgmma, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
}

static void launch(const AttentionCausalOperands& p) {
  const CUtensorMap map = sparsek::tile_map(p);
  const dim3 grid(p.sequence / kTileRows, p.heads);
  attention_causal_wgmma<<<grid, kThreads, kSharedBytes>>>(map, p.out, p.sequence, p.group);
}

int main(int argc, char** argv) {
  return sparsek::run<sparsek::AttentionCausal>(
      argc, argv, {"attention_causal_wgmma", require, prepare, launch});
}
