// Rung 3, trajectory_resample_tma: the rows come by bulk copies, started by the lanes that found
// them: one copy brings both rows of an interval, and the copies of a round are all under way
// before the first is waited for. The search is warp_optimized's. The walk is the second of its two
// for all sizes: targets in one interval read its rows once, and keep them in registers as value
// and slope. The launch is an ordinary one.
//
// No faster than warp_optimized on the large shapes. What that teaches: each row is used by one
// warp, once and as it came, so that shared memory is only a stop on its way to the registers; and
// the copies start no sooner than loads would, after the search. A copy engine pays where warps
// share what it brings, or where it runs far ahead of its use.
//
// The output leaves in streaming stores. Through shared memory and out by bulk copies it took
// 25.8 us instead of 25.7 us at 64,1000,512,512, and 102.9 us instead of 97.8 us at
// 256,100,2048,256 (tiles of 2 KB, rows not kept, in a graph; H200, 2026-11-21).
//
// Thread block: WARPS warps with tiles of one trajectory; they share nothing.
// Shared memory (dynamic): for each warp the rows of `capacity` intervals, 4 bytes a feature and
//   interval; a tile with more intervals takes several rounds.
// Barriers: full[warp] 1 arrival (lane 0) and the bytes of a round; the warp waits. A round begins
//   when all lanes have read the rows of the one before.
// Grid: x walks the tiles in the order of the output.
#include "../common/bulk.cuh"
#include "../common/harness.cuh"
#include "interpolation.cuh"
#include "problem.cuh"

#ifndef WARPS
#define WARPS 4
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 8
#endif

namespace {

using sparsek::Barrier;
using sparsek::kAllLanes;
using sparsek::kVectorElements;
using sparsek::Operands;
using sparsek::Place;
using sparsek::Values;

constexpr int kWarps = WARPS;
constexpr int kThreads = 32 * kWarps;
constexpr int kVectorBytes = 16;
constexpr int kMaxSharedBytes = 226 * 1024;

// Of an interval in shared memory: its two rows.
__host__ __device__ constexpr int interval_vectors(int vectors) { return 2 * vectors; }

// Targets in the tile of a warp: so many bytes of the output, more where targets share their rows,
// but no more targets than lanes, and fewer where the multiprocessors would run short of warps.
int tile_targets(const Operands& p) {
  constexpr std::int64_t kEnoughWarps = 132 * 24;
  const int tile_bytes = p.targets < p.steps ? 2048 : 4096;
  const int row_bytes = p.features * static_cast<int>(sizeof(__nv_bfloat16));
  int tile = std::min(32, std::max(1, tile_bytes / row_bytes));
  while (tile > 1 && static_cast<std::int64_t>(p.batch) * p.targets / tile < kEnoughWarps) {
    tile /= 2;
  }
  return tile;
}

}  // namespace

// A tile of targets a warp.
extern "C" __global__ void __launch_bounds__(kThreads, MIN_BLOCKS)
    trajectory_resample_tma(const uint4* __restrict__ source,
                            const float* __restrict__ source_times,
                            const float* __restrict__ target_times, uint4* __restrict__ out,
                            int steps, int targets, int vectors, int first_step,
                            int blocks_per_trajectory, int tile, int capacity) {
  extern __shared__ __align__(128) uint4 shared[];
  __shared__ Barrier barriers[kWarps];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int trajectory = blockIdx.x / blocks_per_trajectory;
  const int first = (blockIdx.x % blocks_per_trajectory * kWarps + warp) * tile;
  const int count = min(tile, targets - first);
  if (count <= 0) return;
  const std::size_t first_target = static_cast<std::size_t>(trajectory) * targets + first;
  const std::size_t first_sample = static_cast<std::size_t>(trajectory) * steps;

  // Lanes without a target repeat the last one.
  const float* const times = source_times + first_sample;
  const int window = sparsek::guess_window(first, count, targets, steps);
  const float sample = window + lane < steps ? __ldg(times + window + lane) : INFINITY;
  const float target = __ldg(target_times + first_target + min(lane, count - 1));

  Barrier* const full = barriers + warp;
  uint4* const intervals = shared + warp * capacity * interval_vectors(vectors);
  if (lane == 0) {
    sparsek::barrier_init(full, 1);
    sparsek::barrier_init_fence();
  }
  __syncwarp();
  const Place place =
      sparsek::find_place_in_window(sample, window, times, steps, first_step, target);

  // Neighbours in one interval share its rows; the first of them copies.
  const int row_before = __shfl_up_sync(kAllLanes, place.row, 1);
  const bool leads = lane < count && (lane == 0 || place.row != row_before);
  const bool has_next = place.row + 1 < steps;
  const unsigned leaders = __ballot_sync(kAllLanes, leads);
  const int ordinal = __popc(leaders & (2u << lane) - 1) - 1;
  const int next = has_next ? vectors : 0;
  uint4* const results = out + first_target * vectors;
  int first_of_round = 0;
  std::uint32_t parity = 0;
  for (int done = 0; done < __popc(leaders); done += capacity, parity ^= 1) {
    const bool in_round = lane < count && ordinal >= done && ordinal < done + capacity;
    const bool copies = leads && in_round;
    const unsigned singles = __ballot_sync(kAllLanes, copies);
    const unsigned pairs = __ballot_sync(kAllLanes, copies && has_next);
    const int end_of_round = first_of_round + __popc(__ballot_sync(kAllLanes, in_round));
    const int place_in_shared = (ordinal - done) * interval_vectors(vectors);
    if (lane == 0) {
      sparsek::barrier_arrive_expect(full,
                                     (__popc(singles) + __popc(pairs)) * vectors * kVectorBytes);
    }
    __syncwarp();
    if (copies) {
      sparsek::bulk_load(intervals + place_in_shared,
                         source + (first_sample + place.row) * vectors,
                         (has_next ? 2 : 1) * vectors * kVectorBytes, full);
    }

    sparsek::barrier_wait(full, parity);
    for (int base = 0; base < vectors; base += 32) {
      // Lanes without a vector go along with the last one, and store nothing.
      const int v = min(base + lane, vectors - 1);
      const bool stores = base + lane < vectors;
      Values value{}, slope{};
      int held = -1;
#pragma unroll 1
      for (int k = first_of_round; k < end_of_round; ++k) {
        const int interval = __shfl_sync(kAllLanes, place_in_shared, k);
        const int to_next = __shfl_sync(kAllLanes, next, k);
        const float weight = __shfl_sync(kAllLanes, place.weight, k);
        if (interval != held) {
          const uint4* const vector = intervals + interval + v;
          value = sparsek::unpack(vector[0]);
          slope = sparsek::difference(sparsek::unpack(vector[to_next]), value);
          held = interval;
        }
        if (stores) {
          __stcs(results + static_cast<std::size_t>(k) * vectors + v,
                 sparsek::interpolate(value, slope, weight));
        }
      }
    }
    first_of_round = end_of_round;
    __syncwarp();
  }
}

static void require(const sparsek::Shape& shape) {
  sparsek::require_whole_vectors(shape);
  constexpr std::int64_t most = kMaxSharedBytes / kWarps / 2 / sizeof(__nv_bfloat16) / 8 * 8;
  if (shape.features <= most) return;
  sparsek::usage_error("--features " + std::to_string(shape.features) + " is more than " +
                       std::to_string(most) + ", of which shared memory holds two rows a warp");
}

static void prepare() {
  SPARSEK_CUDA_CHECK(cudaFuncSetAttribute(
      trajectory_resample_tma, cudaFuncAttributeMaxDynamicSharedMemorySize, kMaxSharedBytes));
}

static void launch(const Operands& p) {
  const int vectors = p.features / kVectorElements;
  const int tile = tile_targets(p);
  const int per_block = kWarps * tile;
  const int blocks_per_trajectory = (p.targets + per_block - 1) / per_block;
  const auto blocks =
      static_cast<unsigned>(static_cast<std::int64_t>(p.batch) * blocks_per_trajectory);
  // The intervals that an even tile spans, and some; more only cost it another round.
  const auto expected = static_cast<std::int64_t>(tile) * p.steps / p.targets + 3;
  const int capacity = static_cast<int>(std::min<std::int64_t>(tile, expected));
  const int bytes = kWarps * capacity * interval_vectors(vectors) * kVectorBytes;
  trajectory_resample_tma<<<blocks, kThreads, bytes>>>(
      reinterpret_cast<const uint4*>(p.source), p.source_times, p.target_times,
      reinterpret_cast<uint4*>(p.out), p.steps, p.targets, vectors, sparsek::first_step(p.steps),
      blocks_per_trajectory, tile, capacity);
}

int main(int argc, char** argv) {
  return sparsek::run<sparsek::Problem>(argc, argv,
                                        {"trajectory_resample_tma", require, prepare, launch});
}
