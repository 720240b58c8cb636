// Rung 2, trajectory_resample_warp_optimized: a warp takes a tile of consecutive targets, searches
// once, each lane for a target of its own, and shuffles hand row and weight round. Then all lanes
// walk the tile together, 16 bytes a lane, in one of two ways:
//   * few targets an interval: the rows of all targets of a small tile are under way before the
//     first is used. Rows that neighbours share come from the caches.
//   * many: one target after the other, the rows of the interval held in registers as value and
//     slope. A target in the same interval then costs its interpolation and a store.
//
// The search reads one sample a lane: those 32 among which the tile would lie if targets and
// samples covered the same time evenly. Their load waits for nothing, the shuffles find every
// interval inside, and only a warp that guessed wrong searches all samples. So two loads wait for
// each other, the samples and then the rows; a binary search has some log2(S) before the rows.
//
// The launch is a dependent one: thread blocks take their places while the last ones of the kernel
// before still run, and wait for it to complete before they touch global memory.
//
// What bounds it: the memory. In graphs of launches that take turns at several inputs, the same
// walks with read-only loads, which a dependent launch rules out (dependent_launch.cuh), took
// 4.81 us at 32,500,256,256, 24.80 us at 64,1000,512,512 (4.01 TB/s) and 73.37 us at
// 256,100,2048,256 (3.87 TB/s); launched the ordinary way 5.11, 25.10 and 73.66 us. These loads are
// not measured yet. A kernel that only streams as many bytes as the second took 23.2 to 24.3 us,
// one that only stores the output of the third 58 to 63 us (H200, 2026-11-21). Likely among the
// rest: the start, when no row is asked for until the samples have come.
//
// Thread block: WARPS warps, tiles of one trajectory side by side. Registers: 64 a thread, so that
//   MIN_BLOCKS thread blocks share a multiprocessor. Fewer than 256 features leave lanes without a
//   vector.
// Shared memory: none. Barriers: none.
// Grid: x walks the tiles in the order of the output, so that the memory sees a narrow window of
//   source and output at any time.
#include "../common/dependent_launch.cuh"
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

using sparsek::kAllLanes;
using sparsek::kVectorElements;
using sparsek::Operands;
using sparsek::Place;
using sparsek::Values;

constexpr int kWarps = WARPS;
constexpr int kThreads = 32 * kWarps;
constexpr int kManyTargets = 4;      // targets for every sample, from which on rows are held
constexpr int kTargetsInFlight = 2;  // a tile of the first kind
constexpr int kVectorsInFlight = 2;  // of a row, a lane
constexpr int kTargetsHeld = 8;      // a tile of the second kind
constexpr int kUnrolled = 4;

static_assert(kTargetsInFlight < kTargetsHeld && kTargetsHeld <= 32,
              "the size of a tile tells its kind, and each of its targets needs a lane");

// Where each lane's target lies. Lanes without one repeat the last.
__device__ __forceinline__ Place find_places(const float* times, int steps, int first_step,
                                             const float* tile_times, int first, int count,
                                             int targets) {
  const int lane = threadIdx.x % 32;
  const int window = sparsek::guess_window(first, count, targets, steps);
  const float sample = window + lane < steps ? times[window + lane] : INFINITY;
  const float target = tile_times[min(lane, count - 1)];
  return sparsek::find_place_in_window(sample, window, times, steps, first_step, target);
}

// The output is not read again: streaming stores leave the caches to the source.
__device__ __forceinline__ void store(uint4* result, const Values& value, const Values& slope,
                                      float weight) {
  __stcs(result, sparsek::interpolate(value, slope, weight));
}

// Few targets an interval. `samples` and `results` are the first rows of trajectory and tile.
__device__ __forceinline__ void resample_in_flight(const uint4* samples, uint4* results,
                                                   int vectors, int count, const Place& place) {
  const int lane = threadIdx.x % 32;
  const uint4* rows[kTargetsInFlight];
  int next[kTargetsInFlight];
  float weights[kTargetsInFlight];
#pragma unroll
  for (int k = 0; k < kTargetsInFlight; ++k) {
    const int row = __shfl_sync(kAllLanes, place.row, k);
    weights[k] = __shfl_sync(kAllLanes, place.weight, k);
    rows[k] = samples + static_cast<std::size_t>(row) * vectors;
    next[k] = weights[k] > 0 ? vectors : 0;
  }
  for (int base = lane; base < vectors; base += 32 * kVectorsInFlight) {
    uint4 a[kTargetsInFlight][kVectorsInFlight], b[kTargetsInFlight][kVectorsInFlight];
#pragma unroll
    for (int k = 0; k < kTargetsInFlight; ++k) {
#pragma unroll
      for (int c = 0; c < kVectorsInFlight; ++c) {
        const int v = base + 32 * c;
        if (v < vectors) {
          a[k][c] = rows[k][v];
          b[k][c] = rows[k][next[k] + v];
        }
      }
    }
#pragma unroll
    for (int k = 0; k < kTargetsInFlight; ++k) {
#pragma unroll
      for (int c = 0; c < kVectorsInFlight; ++c) {
        const int v = base + 32 * c;
        if (v < vectors && k < count) {
          const Values value = sparsek::unpack(a[k][c]);
          const Values slope = sparsek::difference(sparsek::unpack(b[k][c]), value);
          store(results + k * vectors + v, value, slope, weights[k]);
        }
      }
    }
  }
}

// Many targets an interval. The arguments are those above.
__device__ __forceinline__ void resample_held(const uint4* samples, uint4* results, int vectors,
                                              int count, const Place& place) {
  const int lane = threadIdx.x % 32;
  // A row that counts alone is held without a slope.
  const int interval = 2 * place.row + (place.weight > 0 ? 1 : 0);
  for (int base = 0; base < vectors; base += 32) {
    // Lanes without a vector go along with the last one, and store nothing.
    const int v = min(base + lane, vectors - 1);
    const bool stores = base + lane < vectors;
    Values value{}, slope{};
    int held = -1;
#pragma unroll kUnrolled
    for (int i = 0; i < count; ++i) {
      const int wanted = __shfl_sync(kAllLanes, interval, i);
      const float weight = __shfl_sync(kAllLanes, place.weight, i);
      if (wanted != held) {
        const uint4* const row = samples + static_cast<std::size_t>(wanted / 2) * vectors + v;
        const uint4 a = row[0], b = row[wanted % 2 != 0 ? vectors : 0];
        value = sparsek::unpack(a);
        slope = sparsek::difference(sparsek::unpack(b), value);
        held = wanted;
      }
      if (stores) store(results + i * vectors + v, value, slope, weight);
    }
  }
}

}  // namespace

// A tile of targets a warp.
extern "C" __global__ void __launch_bounds__(kThreads, MIN_BLOCKS)
    trajectory_resample_warp_optimized(const uint4* source, const float* source_times,
                                       const float* target_times, uint4* out, int steps,
                                       int targets, int vectors, int first_step,
                                       int blocks_per_trajectory, int tile) {
  sparsek::launch_dependents();
  sparsek::wait_for_prerequisites();

  const int warp = threadIdx.x / 32;
  const int trajectory = blockIdx.x / blocks_per_trajectory;
  const int first = (blockIdx.x % blocks_per_trajectory * kWarps + warp) * tile;
  const int count = min(tile, targets - first);
  if (count <= 0) return;
  const std::size_t first_target = static_cast<std::size_t>(trajectory) * targets + first;
  const std::size_t first_sample = static_cast<std::size_t>(trajectory) * steps;

  const Place place = find_places(source_times + first_sample, steps, first_step,
                                  target_times + first_target, first, count, targets);
  const uint4* const samples = source + first_sample * vectors;
  uint4* const results = out + first_target * vectors;
  if (tile > kTargetsInFlight) {
    resample_held(samples, results, vectors, count, place);
  } else {
    resample_in_flight(samples, results, vectors, count, place);
  }
}

static void launch(const Operands& p) {
  const int tile = p.targets / kManyTargets >= p.steps ? kTargetsHeld : kTargetsInFlight;
  const int per_block = kWarps * tile;
  const int blocks_per_trajectory = (p.targets + per_block - 1) / per_block;
  const auto blocks =
      static_cast<unsigned>(static_cast<std::int64_t>(p.batch) * blocks_per_trajectory);
  sparsek::launch_dependent(
      trajectory_resample_warp_optimized, blocks, kThreads, 0,
      reinterpret_cast<const uint4*>(p.source), p.source_times, p.target_times,
      reinterpret_cast<uint4*>(p.out), p.steps, p.targets, p.features / kVectorElements,
      sparsek::first_step(p.steps), blocks_per_trajectory, tile);
}

int main(int argc, char** argv) {
  return sparsek::run<sparsek::Problem>(
      argc, argv,
      {"trajectory_resample_warp_optimized", sparsek::require_whole_vectors, nullptr, launch});
}
