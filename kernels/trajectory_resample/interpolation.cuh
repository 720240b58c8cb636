// What the variants share in which a warp takes a tile of targets: the search of the intervals by
// all lanes at once, and the interpolation of a 16-byte vector.
#pragma once

#include <cuda_bf16.h>

#include <algorithm>
#include <cstdint>

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

}  // namespace sparsek
