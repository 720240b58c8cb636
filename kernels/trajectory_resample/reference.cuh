// The independent reference: one thread an output element, which counts all times of the trajectory
// instead of searching them, and interpolates in double.
//
// Tolerance, element by element, with u = 2^-24 the rounding of fp32 and a, b the two values:
//   |got - expected| <= E + half the spacing of bf16 at |expected| + E,  E = 2^-21 (|a| + |b|)
//   * x - t0 and t1 - t0 each round once, with a relative error of at most u: the times are exact,
//     so that nothing is lost where they cancel. A division of at most 2 ulp (4 u) makes it 6 u of
//     the weight w; correctly rounded, 3 u.
//   * b - a rounds by at most u |b - a|, the fused multiply-add by at most u |result|. So fp32 errs
//     by at most 7 u w |b - a| + u |result| < 8 u (|a| + |b|) = E, as w and the result are between
//     the ends; second-order terms are covered by the slack of either bound. (1 - w) a + w b stays
//     inside as well.
//   * Held ends have no such error, and pass with the same bound.
//   * The rounding to bf16, 8 significant bits, errs by at most half the spacing: 2^(e-8) for
//     magnitudes in [2^e, 2^(e+1)), e >= -126. The error E may lift the value into the next binade.
//   * The reference's own error, some 2^-52 (|a| + |b|), is negligible.
#pragma once

#include <cuda_bf16.h>

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "../common/compare.cuh"

namespace sparsek {

constexpr const char* kToleranceInWords =
    "|got - expected| <= E + half the bf16 spacing at |expected| + E, E = 2^-21 (|a| + |b|), a and "
    "b the values on either side";

// What a kernel is launched on; all pointers are device pointers.
struct Operands {
  const __nv_bfloat16* source;  // [batch][steps][features]
  const float* source_times;    // [batch][steps], never decreasing
  const float* target_times;    // [batch][targets], in any order
  __nv_bfloat16* out;           // [batch][targets][features]
  int batch, steps, targets, features;
};

struct Reference {
  Operands p;

  __device__ Expected expected(std::uint64_t index) const {
    const std::uint64_t target = index / p.features;
    const int feature = static_cast<int>(index % p.features);
    const std::uint64_t first_sample = target / p.targets * p.steps;
    const float* const times = p.source_times + first_sample;
    const __nv_bfloat16* const column = p.source + first_sample * p.features + feature;
    const auto value = [&](int row) {
      return static_cast<double>(
          __bfloat162float(column[static_cast<std::uint64_t>(row) * p.features]));
    };

    const double x = p.target_times[target];
    int not_later = 0;
    for (int i = 0; i < p.steps; ++i) not_later += times[i] <= x;

    double a, b, weight;
    if (not_later == 0 || not_later == p.steps) {
      a = b = value(not_later == 0 ? 0 : p.steps - 1);
      weight = 0;
    } else {
      const double t0 = times[not_later - 1], t1 = times[not_later];
      a = value(not_later - 1);
      b = value(not_later);
      weight = (x - t0) / (t1 - t0);
    }
    const double result = a + weight * (b - a);
    const double arithmetic = 0x1p-21 * (fabs(a) + fabs(b));
    const double largest = fabs(result) + arithmetic;
    const int exponent = largest == 0 ? -126 : max(ilogb(largest), -126);
    return {result, arithmetic + ldexp(1.0, exponent - 8)};
  }

  __device__ double got(std::uint64_t index) const {
    return static_cast<double>(__bfloat162float(p.out[index]));
  }
};

}  // namespace sparsek
