// The independent reference: one thread an output element, in double, no tiles, no tensor cores;
// and how far a kernel may be from it. It subtracts the largest score so far, as exp overflows in
// double too from 710 on; what that rounds is far below the tolerance.
//
// For a query let s_j be its scores, p_j = exp(s_j / sqrt(D)) / sum exp(s / sqrt(D)) and, for a
// feature, out = sum p_j v_j. A kernel computes weights w_j = exp((s_j - m) / sqrt(D)) with m the
// largest score, so that the largest weight is 1 and L = sum w_j is at least 1. To first order:
//   * A score is a chain of D fp32 additions of exact products, in any order and truncated:
//     it errs by D * 2^-23 * a_j with a_j = sum_k |q_k k_jk| (kernels/README.md has the argument
//     for tensor cores). Its weight errs by that over sqrt(D), relatively.
//   * Scaling by log2(e) / sqrt(D) and subtracting the maximum round the constant, the two products
//     and the difference, each by 2^-24 of at most (|s_j| + |m|) / sqrt(D) in the exponent:
//     together 2^-22 * (|s_j| + |m|) / sqrt(D).
//     With a running maximum the exponent of a weight is a sum of falling steps, from its score to
//     the maximum of its time and on to the last one: their magnitudes add up to m - s_j, so the
//     same bound covers their roundings.
//   * ex2.approx errs by 2^-22 (PTX ISA). A running maximum multiplies the weights so far by one
//     more such factor, rounded, each time it grows: at most once in 16 keys. With the merge of
//     parts of the keys: (S / 16 + 2) * 2^-21.
//   These are the relative error e_j of a weight. It moves sum w_j v_j by sum w_j e_j |v_j|, and
//   out by as much again through L: |out| * sum p_j e_j. With outliers e_j reaches some hundredths,
//   so what is only first order is not left to the last hundredth: an error d of an exponent
//   changes a weight by at most d + d^2 (d < 1), and both parts are divided by 1 - sum p_j e_j, how
//   much smaller L may be.
//   * A weight is rounded to fp16 for the second product, not for L: 2^-11 of it, or 2^-25 where it
//     is below 2^-14. In out: 2^-11 * sum p_j |v_j| + 2^-25 * sum |v_j| / L.
//   * The sums over the keys are chains of S additions: S * 2^-23 * sum p_j |v_j|, and
//     S * 2^-23 * |out| for L.
//   * The division (2 ulp) and at most four more roundings of the parts: 2^-21 * sum p_j |v_j|.
//   * The output is rounded to fp16: 2^-11 * |out|, or 2^-25.
// One hundredth more covers the products of these errors, and the reference's own error is far
// below it. The two roundings to fp16 are most of the bound. A key left out moves an element by
// some p_j |v_j|: with 512 keys the median of that is about the bound, so among the 64 elements of
// each query it shows.
#pragma once

#include <cuda_fp16.h>

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "../common/compare.cuh"

namespace sparsek {

constexpr int kFeatures = 64;  // D

// What a kernel is launched on; all pointers are device pointers to [heads][sequence][kFeatures].
struct AttentionOperands {
  const __half* q;  // k follows it, and v follows k: one buffer
  const __half* k;
  const __half* v;
  __half* out;
  int heads;  // of the whole batch
  int sequence;
};

constexpr const char* kAttentionTolerance =
    "to first order in each rounding of scores, weights (fp16), sums and output (fp16), for each "
    "element: mostly 2^-11 * (sum|p*v| + |out|)";

struct AttentionReference {
  AttentionOperands p;

  __device__ double got(std::uint64_t index) const {
    return static_cast<double>(__half2float(p.out[index]));
  }

  __device__ Expected expected(std::uint64_t index) const {
    const double scale = 1 / sqrt(static_cast<double>(kFeatures));
    const std::uint64_t row = index / kFeatures;
    const int feature = static_cast<int>(index % kFeatures);
    const std::uint64_t first_key = row / p.sequence * p.sequence;
    const __half* const q = p.q + row * kFeatures;

    double top = -INFINITY, all = 0, sum = 0, magnitude = 0, values = 0;
    double error = 0, error_magnitude = 0;  // of weights times what of e_j differs from key to key
    for (int j = 0; j < p.sequence; ++j) {
      const __half* const k = p.k + (first_key + j) * kFeatures;
      double score = 0, a = 0;
#pragma unroll 8
      for (int i = 0; i < kFeatures; ++i) {
        const double product = __half2float(q[i]) * __half2float(k[i]);
        score += product;
        a += fabs(product);
      }
      const double v = __half2float(p.v[(first_key + j) * kFeatures + feature]);
      if (score > top) {
        // The first key has nothing to scale: its factor is exp(-inf) = 0.
        const double factor = exp((top - score) * scale);
        top = score;
        all *= factor;
        sum *= factor;
        magnitude *= factor;
        error *= factor;
        error_magnitude *= factor;
      }
      const double weight = exp((score - top) * scale);
      const double d = scale * (kFeatures * 0x1p-23 * a + 0x1p-22 * fabs(score));
      const double e = d + d * d;
      all += weight;
      sum += weight * v;
      magnitude += weight * fabs(v);
      values += fabs(v);
      error += weight * e;
      error_magnitude += weight * e * fabs(v);
    }

    const double out = sum / all;
    const double spread = magnitude / all;  // sum p |v|
    const double every = (p.sequence / 16 + 2) * 0x1p-21 + 0x1p-22 * fabs(top) * scale;
    const double weight_sum = error / all + every;  // sum p e, the relative error of L
    const double weights = (error_magnitude / all + every * spread + fabs(out) * weight_sum) /
                           (1 - weight_sum);
    const double rounded = 0x1p-11 * spread + 0x1p-25 * values / all;
    const double sums = p.sequence * 0x1p-23 * (spread + fabs(out));
    const double last = 0x1p-21 * spread + 0x1p-11 * fabs(out) + 0x1p-25;
    return {out, 1.01 * (weights + rounded + sums + last)};
  }
};

}  // namespace sparsek
