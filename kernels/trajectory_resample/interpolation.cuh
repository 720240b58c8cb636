// What the variants share in which a warp takes a tile of targets: the search of the intervals by
// all lanes at once, the interpolation of a 16-byte vector, and the walk that holds the rows of an
// interval.
#pragma once

#include <cuda_bf16.h>

#include <algorithm>
#include <cstdint>

#include "../common/prefetch.cuh"
#include "problem.cuh"

namespace sparsek {

constexpr unsigned kAllLanes = 0xFFFFFFFFu;
constexpr int kVectorElements = 8;  // bf16 values in a 16-byte vector

// What a target is made of: row `row`, and with this weight the one after it. The ends are held by
// a weight of 0, which needs no row after it.
struct Place {
  int row;
  float weight;
};

// The first step of a binary search among so many samples: the highest power of 2 that is not more.
inline int first_step(int steps) {
  int step = 1;
  while (step <= steps / 2) step *= 2;
  return step;
}

__device__ __forceinline__ Place find_place(const float* times, int steps, int first_step,
                                            float target) {
  int not_later = 0;  // samples known not to be later than the target
  for (int step = first_step; step > 0; step /= 2) {
    const int probe = not_later + step;
    if (probe <= steps && times[probe - 1] <= target) not_later = probe;
  }
  if (not_later == 0) return {0, 0.0f};
  const int row = not_later - 1;
  if (not_later == steps) return {row, 0.0f};
  const float t0 = times[row], t1 = times[row + 1];
  return {row, (target - t0) / (t1 - t0)};
}

// The first of the 32 samples among which a tile of targets is expected: targets and samples are
// taken to cover the same time evenly. A wrong guess costs a search, never the result.
__device__ __forceinline__ int guess_window(int first, int count, int targets, int steps) {
  const float middle = (static_cast<float>(first) + 0.5f * static_cast<float>(count)) *
                       static_cast<float>(steps) / static_cast<float>(targets);
  // The last lane stands behind the last sample, at an infinite time.
  return max(min(static_cast<int>(middle) - 16, steps - 31), 0);
}

// Finds the places of a warp's targets, one a lane, among the 32 samples from `first` on, of which
// each lane has loaded one (infinite behind the last). Targets outside them send the warp to
// find_place.
__device__ __forceinline__ Place find_place_in_window(float sample, int first, const float* times,
                                                      int steps, int first_step, float target) {
  int not_later = 0;  // of the samples in the window
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    const float probe = __shfl_sync(kAllLanes, sample, not_later + step - 1);
    if (probe <= target) not_later += step;
  }
  const float t0 = __shfl_sync(kAllLanes, sample, max(not_later - 1, 0));
  const float t1 = __shfl_sync(kAllLanes, sample, not_later);
  const bool inside = t1 > target && (not_later > 0 || first == 0);
  if (!__all_sync(kAllLanes, inside)) return find_place(times, steps, first_step, target);
  const int row = max(first + not_later - 1, 0);
  const bool held = not_later == 0 || row == steps - 1;
  return {row, held ? 0.0f : (target - t0) / (t1 - t0)};
}

// The times that a warp looks at to place a tile of targets: one sample and one target a lane.
struct Times {
  const float* samples;  // of the trajectory
  const float* targets;  // of the tile, one after the other
  int window;            // the first of the 32 samples that are looked at first
};

__device__ __forceinline__ Times tile_times(const Operands& p, int trajectory, int first,
                                            int count) {
  return {p.source_times + static_cast<std::size_t>(trajectory) * p.steps,
          p.target_times + static_cast<std::size_t>(trajectory) * p.targets + first,
          guess_window(first, count, p.targets, p.steps)};
}

__device__ __forceinline__ void prefetch_times(const Times& times, int count, int steps) {
  const int lane = threadIdx.x % 32;
  prefetch_line(times.samples + min(times.window + lane, steps - 1));
  prefetch_line(times.targets + min(lane, count - 1));
}

// Where each lane's target lies. Lanes without one repeat the last.
__device__ __forceinline__ Place find_places(const Times& times, int count, int steps,
                                             int first_step) {
  const int lane = threadIdx.x % 32;
  const int at = times.window + lane;
  const float sample = at < steps ? times.samples[at] : INFINITY;
  const float target = times.targets[min(lane, count - 1)];
  return find_place_in_window(sample, times.window, times.samples, steps, first_step, target);
}

// Eight values in fp32.
struct Values {
  float2 pairs[kVectorElements / 2];
};

__device__ __forceinline__ Values unpack(const uint4& vector) {
  const auto* const pairs = reinterpret_cast<const __nv_bfloat162*>(&vector);
  Values values;
#pragma unroll
  for (int i = 0; i < kVectorElements / 2; ++i) values.pairs[i] = __bfloat1622float2(pairs[i]);
  return values;
}

__device__ __forceinline__ Values difference(const Values& b, const Values& a) {
  Values values;
#pragma unroll
  for (int i = 0; i < kVectorElements / 2; ++i) {
    values.pairs[i] = {b.pairs[i].x - a.pairs[i].x, b.pairs[i].y - a.pairs[i].y};
  }
  return values;
}

// a + weight * slope, rounded to bf16. A weight of 0 gives a exactly.
__device__ __forceinline__ uint4 interpolate(const Values& a, const Values& slope, float weight) {
  uint4 vector;
  auto* const pairs = reinterpret_cast<__nv_bfloat162*>(&vector);
#pragma unroll
  for (int i = 0; i < kVectorElements / 2; ++i) {
    pairs[i] = __floats2bfloat162_rn(fmaf(weight, slope.pairs[i].x, a.pairs[i].x),
                                     fmaf(weight, slope.pairs[i].y, a.pairs[i].y));
  }
  return vector;
}

// The output is not read again: streaming stores leave the caches to the source.
__device__ __forceinline__ void store(uint4* result, const Values& value, const Values& slope,
                                      float weight) {
  __stcs(result, interpolate(value, slope, weight));
}

// A warp makes the rows of its tile, one target after the other, the rows of an interval held in
// registers as value and slope: a target in the same interval costs its interpolation and a store.
// place.row counts the rows of `samples`; `results` is the first row of the tile.
template <int kUnrolled>
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
        value = unpack(a);
        slope = difference(unpack(b), value);
        held = wanted;
      }
      if (stores) store(results + static_cast<std::size_t>(i) * vectors + v, value, slope, weight);
    }
  }
}

}  // namespace sparsek
