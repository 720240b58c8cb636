// Rung 3, attention_causal_overlap: a softmax runs beside products.
//   * Inside a warp group: the scores of the next tile are started before the products of this
//     tile's weights with the values; the softmax of the former runs beside the latter.
//   * Between the warp groups (PING_PONG): they take turns to start products, so that one's softmax
//     falls into the other's products.
//   * Between thread blocks: the queries that see most keys start first, in all heads, so that the
//     short ones fill the end of the launch.
// What it gained: docs/ladder.md.
//
// Thread block: a producer warp group, of which one thread works, and two consumers of 64 queries.
// Grid: x the heads, y the tiles of 128 queries, the last first.
// Shared memory (dynamic): Q 128 x 128 bf16 and STAGES x (K and V 128 x 128 bf16), with a 128-byte
//   swizzle; 32,768 + 2 x 65,536 bytes, 9 barriers, and up to 1,023 bytes to align.
// Registers: 24 a thread of the producer, 240 of the consumers (a tile's scores 64, its weights 32,
//   the output 64).
// Barriers: full_q 1 arrival (the producer) and the bytes of Q, used once. full_k and full_v[stage]
//   1 arrival (the producer) and the bytes; the consumers wait. empty_k and empty_v[stage] 8
//   arrivals (the consumers' warps, when their products of the tile have ended); the producer
//   waits.
// Named barriers 1 and 2 (PING_PONG), 256 threads: a consumer waits at its own before it starts a
//   tile's products, where the other arrives after it has started its own. The second consumer
//   arrives once before the first turn and not after the last, so that none is left open.
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

#ifndef PING_PONG
#define PING_PONG 1
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

static_assert(kConsumers * kGroupRows == kTileRows, "the diagonal is in one tile of keys");
static_assert(kStages >= 2, "the keys of a tile come before the values of the one before");
static_assert(kSharedBytes <= 227 * 1024, "Q and the ring fit in shared memory");

using Cursor = sparsek::Cursor<kStages>;

}  // namespace

// 128 queries of one head.
extern "C" __global__ void __launch_bounds__(kThreads, 1)
    attention_causal_overlap(const __grid_constant__ CUtensorMap map,
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
  const int head = blockIdx.x;
  const int tile = gridDim.y - 1 - blockIdx.y;  // of queries
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
      const int kv_heads = static_cast<int>(gridDim.x) / group;
      const int last_k = (static_cast<int>(gridDim.x) + head / group) * sequence + tile * kTileRows;
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
      load_k(0);
      for (int turn = 1; turn < tiles; ++turn) {
        load_k(turn);
        load_v(turn - 1);
      }
      load_v(tiles - 1);
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
    const auto wait_for_turn = [&] {
      if (PING_PONG != 0) sparsek::named_barrier(1 + consumer, kConsumers * kWarpGroup);
    };
    const auto give_turn = [&] {
      if (PING_PONG != 0) sparsek::named_barrier_arrive(2 - consumer, kConsumers * kWarpGroup);
    };
    if (consumer == 1 && tiles > 1) give_turn();

    sparsek::barrier_wait(full_q, 0);
    sparsek::barrier_wait(full_k + next_k.stage, next_k.parity);
    sparsek::start_scores(scores, queries, sparsek::advance(keys, next_k.stage * kTileBytes));
    sparsek::wgmma_wait<0>();
    sparsek::wgmma_settle(scores);
    if (lane == 0) sparsek::barrier_arrive(empty_k + next_k.stage);
    next_k.step();
    sparsek::mask_above_diagonal(scores, row);
    softmax.weigh(scores);
    sparsek::pack_weights(scores, weights);

    if (tiles > 1) sparsek::barrier_wait(full_k + next_k.stage, next_k.parity);
    for (int turn = 1; turn < tiles; ++turn) {
      wait_for_turn();
      sparsek::start_scores(scores, queries, sparsek::advance(keys, next_k.stage * kTileBytes));
      sparsek::barrier_wait(full_v + next_v.stage, next_v.parity);
      sparsek::start_sums(sums, weights, sparsek::advance(values, next_v.stage * kTileBytes));
      if (consumer == 0 || turn + 1 < tiles) give_turn();

      // The scores have ended; the sums of the tile before are under way during the softmax.
      sparsek::wgmma_wait<1>();
      sparsek::wgmma_settle(scores);
      if (lane == 0) sparsek::barrier_arrive(empty_k + next_k.stage);
      next_k.step();
      softmax.weigh(scores);
      // The wait for the next keys stands here because ptxas moves no instruction over its branch:
      // without it, the wait for the sums comes before the exponentials.
      sparsek::wgmma_settle(scores);
      if (turn + 1 < tiles) sparsek::barrier_wait(full_k + next_k.stage, next_k.parity);

      sparsek::wgmma_wait<0>();
      sparsek::wgmma_settle(sums);
      if (lane == 0) sparsek::barrier_arrive(empty_v + next_v.stage);
      next_v.step();
      softmax.rescale(sums);
      sparsek::pack_weights(scores, weights);
    }

    sparsek::barrier_wait(full_v + next_v.stage, next_v.parity);
    sparsek::start_sums(sums, weights, sparsek::advance(values, next_v.stage * kTileBytes));
    sparsek::wgmma_wait<0>();
    sparsek::wgmma_settle(sums);

    sparsek::store_rows(out + static_cast<std::size_t>(first_row + row) * kFeatures, sums, softmax);
  }
}

static void require(const sparsek::AttentionCausalShape& shape) {
  shape.require_sequence_of(kTileRows);
}

static void prepare() {
  SPARSEK_CUDA_CHECK(cudaFuncSetAttribute(
      attention_causal_overlap, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
}

static void launch(const AttentionCausalOperands& p) {
  const CUtensorMap map = sparsek::tile_map(p);
  const dim3 grid(p.heads, p.sequence / kTileRows);
  attention_causal_overlap<<<grid, kThreads, kSharedBytes>>>(map, p.out, p.sequence, p.group);
}

int main(int argc, char** argv) {
  return sparsek::run<sparsek::AttentionCausal>(
      argc, argv, {"attention_causal_overlap", require, prepare, launch});
}
