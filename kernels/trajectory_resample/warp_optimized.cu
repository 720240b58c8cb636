// Rung 2, trajectory_resample_warp_optimized: a warp takes a tile of consecutive targets, searches
// once, each lane for a target of its own, and shuffles hand row and weight round. Then all lanes
// walk the tile together, 16 bytes a lane, in one of two ways:
//   * few targets an interval: the rows of all targets of a small tile are under way before the
//     first is used. Rows that neighbours share come from the caches.
//   * many: one target after the other, the rows of the interval held in registers as value and
//     slope (resample_held).
//
// The search reads one sample a lane: those 32 among which the tile would lie if targets and
// samples covered the same time evenly. Their load waits for nothing, the shuffles find every
// interval inside, and only a warp that guessed wrong searches all samples. So two loads wait for
// each other, the samples and then the rows; a binary search has some log2(S) before the rows.
//
// The launch is a dependent one: thread blocks take their places while the last ones of the kernel
// before still run, prefetch the times they will look at, and wait for it to complete before they
// read anything. What it gained: docs/kernels.md.
//
// What bounds it: the memory (docs/kernels.md has the time of a stream of as many bytes). A kernel
// that only stores the output of 256,100,2048,256 took 79 % of its time there (H200, 2026-11-22).
// Among the rest is the start of a tile: no row is asked for until its samples have come.
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
constexpr int kTargetsHeld = 12;     // a tile of the second kind
constexpr int kUnrolled = 4;

static_assert(kTargetsInFlight < kTargetsHeld && kTargetsHeld <= 32,
              "the size of a tile tells its kind, and each of its targets needs a lane");

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
          sparsek::store(results + k * vectors + v, value, slope, weights[k]);
        }
      }
    }
  }
}

}  // namespace

// A tile of targets a warp.
extern "C" __global__ void __launch_bounds__(kThreads, MIN_BLOCKS)
    trajectory_resample_warp_optimized(Operands p, int tile, int blocks_per_trajectory,
                                       int first_step) {
  sparsek::launch_dependents();
  const int trajectory = blockIdx.x / blocks_per_trajectory;
  const int warp = threadIdx.x / 32;
  const int first = (blockIdx.x % blocks_per_trajectory * kWarps + warp) * tile;
  const int count = min(tile, p.targets - first);
  if (count <= 0) return;
  const sparsek::Times times = sparsek::tile_times(p, trajectory, first, count);
  sparsek::prefetch_times(times, count, p.steps);
  sparsek::wait_for_prerequisites();

  const Place place = sparsek::find_places(times, count, p.steps, first_step);
  const int vectors = p.features / kVectorElements;
  const auto* const samples =
      reinterpret_cast<const uint4*>(p.source) +
      static_cast<std::size_t>(trajectory) * p.steps * vectors;
  auto* const results =
      reinterpret_cast<uint4*>(p.out) +
      (static_cast<std::size_t>(trajectory) * p.targets + first) * vectors;
  if (tile > kTargetsInFlight) {
    sparsek::resample_held<kUnrolled>(samples, results, vectors, count, place);
  } else {
    resample_in_flight(samples, results, vectors, count, place);
  }
}

static void launch(const Operands& p) {
  sparsek::require_aligned(p);
  const int tile = p.targets / kManyTargets >= p.steps ? kTargetsHeld : kTargetsInFlight;
  const int per_block = kWarps * tile;
  const int blocks_per_trajectory = (p.targets + per_block - 1) / per_block;
  const auto blocks =
      static_cast<unsigned>(static_cast<std::int64_t>(p.batch) * blocks_per_trajectory);
  sparsek::launch_dependent(trajectory_resample_warp_optimized, blocks, kThreads, 0, p, tile,
                            blocks_per_trajectory, sparsek::first_step(p.steps));
}

int main(int argc, char** argv) {
  return sparsek::run<sparsek::Problem>(
      argc, argv,
      {"trajectory_resample_warp_optimized", sparsek::require_whole_vectors, nullptr, launch});
}
