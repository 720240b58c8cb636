// Rung 2, trajectory_resample_warp_optimized: a warp takes a tile of consecutive targets, searches
// once, each lane for a target of its own, and shuffles hand row and weight round. Then all lanes
// walk the tile, 16 bytes a lane, the rows of kGroup targets in flight together. Rows that
// neighbouring targets share come from L1.
//
// The search reads one sample a lane: those 32 among which the tile would lie if targets and
// samples covered the same time evenly. Their load waits for nothing, the shuffles find every
// interval inside, and only a warp that guessed wrong searches all samples. So two loads wait for
// each other, the samples and then the rows; a binary search has some log2(S) before the rows.
//
// What bounds it: with few targets an interval, the latency of those two loads, which other warps
// must cover; with many, also the instructions of the interpolation: the issue slots were busy for
// 31 % of the time at 64,1000,512,512 and 79 % at 256,100,2048,256, with tiles of 2 KB and one
// target a group (ncu, H200, 2026-11-21).
//
// Thread block: WARPS warps, tiles of one trajectory side by side. Fewer than 256 features leave
//   lanes without a vector.
// Shared memory: none. Barriers: none.
// Grid: x walks the tiles in the order of the output, so that the memory sees a narrow window of
//   source and output at any time.
#include "../common/harness.cuh"
#include "interpolation.cuh"
#include "problem.cuh"

#ifndef WARPS
#define WARPS 8
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 5
#endif

namespace {

using sparsek::kAllLanes;
using sparsek::kVectorElements;
using sparsek::Operands;
using sparsek::Place;
using sparsek::Values;

constexpr int kWarps = WARPS;
constexpr int kThreads = 32 * kWarps;
constexpr int kGroup = 2;  // targets whose rows a warp loads together

}  // namespace

// A tile of targets a warp.
extern "C" __global__ void __launch_bounds__(kThreads, MIN_BLOCKS)
    trajectory_resample_warp_optimized(const uint4* __restrict__ source,
                                       const float* __restrict__ source_times,
                                       const float* __restrict__ target_times,
                                       uint4* __restrict__ out, int steps, int targets, int vectors,
                                       int first_step, int blocks_per_trajectory, int tile) {
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
  const Place place =
      sparsek::find_place_in_window(sample, window, times, steps, first_step, target);

  const uint4* const samples = source + first_sample * vectors + lane;
  uint4* results = out + first_target * vectors + lane;
  for (int group = 0; group < count; group += kGroup, results += kGroup * vectors) {
    const uint4* rows[kGroup];
    int next[kGroup];
    float weights[kGroup];
#pragma unroll
    for (int k = 0; k < kGroup; ++k) {
      const int row = __shfl_sync(kAllLanes, place.row, group + k);
      weights[k] = __shfl_sync(kAllLanes, place.weight, group + k);
      rows[k] = samples + static_cast<std::size_t>(row) * vectors;
      next[k] = weights[k] > 0 ? vectors : 0;
    }
#pragma unroll 1
    for (int v = 0; v < vectors - lane; v += 32) {
      uint4 a[kGroup], b[kGroup];
#pragma unroll
      for (int k = 0; k < kGroup; ++k) {
        a[k] = __ldg(rows[k] + v);
        b[k] = __ldg(rows[k] + next[k] + v);
      }
#pragma unroll
      for (int k = 0; k < kGroup; ++k) {
        if (group + k < count) {
          const Values value = sparsek::unpack(a[k]);
          const Values slope = sparsek::difference(sparsek::unpack(b[k]), value);
          // The output is not read again: streaming stores leave the caches to the source.
          __stcs(results + k * vectors + v, sparsek::interpolate(value, slope, weights[k]));
        }
      }
    }
  }
}

static void launch(const Operands& p) {
  const int tile = sparsek::tile_targets(p);
  const int per_block = kWarps * tile;
  const int blocks_per_trajectory = (p.targets + per_block - 1) / per_block;
  const auto blocks =
      static_cast<unsigned>(static_cast<std::int64_t>(p.batch) * blocks_per_trajectory);
  trajectory_resample_warp_optimized<<<blocks, kThreads>>>(
      reinterpret_cast<const uint4*>(p.source), p.source_times, p.target_times,
      reinterpret_cast<uint4*>(p.out), p.steps, p.targets, p.features / kVectorElements,
      sparsek::first_step(p.steps), blocks_per_trajectory, tile);
}

int main(int argc, char** argv) {
  return sparsek::run<sparsek::Problem>(
      argc, argv,
      {"trajectory_resample_warp_optimized", sparsek::require_whole_vectors, nullptr, launch});
}
