// The workload: out[b][t] = the row of source[b] at the time target_times[b][t], interpolated
// linearly between the two samples around it. source [B][S][D] and out [B][T][D] in bf16, the times
// [B][S] and [B][T] in fp32; the arithmetic is fp32.
//
// For one target at time x and the times t[0] <= ... <= t[S-1] of its batch row:
//   * last = the last i with t[i] <= x. Equal neighbours make an empty interval, which last steps
//     over: at x = t[i] = t[i+1] it is row i+1 that counts, with its full weight.
//   * x < t[0] (no such i): out is row 0, exactly. last = S-1: out is row S-1, exactly. So the ends
//     are held, a single sample (S = 1) too, and it is the ends that win where the first or the
//     last interval is empty.
//   * Otherwise t[last] <= x < t[last+1], so that nothing is divided by zero:
//     w = (x - t[last]) / (t[last+1] - t[last]), out = a + w * (b - a) with the rows a = last and
//     b = last+1, rounded to bf16 to nearest even.
// Targets come in any order; an infinite one meets an end. NaN, and times whose difference
// overflows fp32, are outside the definition.
//
// Inputs: values from N(0, 1). Sample j is taken at j + 0.3 u, u uniform in [0, 1), and one in 128
// at the time of its predecessor. The targets stand regularly, up to a tenth of their spacing, from
// one sample's distance before the first sample to as much behind the last. Nearly every row of
// source is then needed (batch, steps, targets, features; seeds 1 to 4): 97.5 to 97.8 % of
// 32,500,256,256 and of 64,1000,512,512, more than 99.9 % of 256,100,2048,256. So bytes() is what
// must move.
//
// With other gaps between the samples (--times) the targets stay, the first sample is at 0 and the
// last at steps - 1, and one in 128 repeats its predecessor's time as well:
//   * bursty: 15 of 16 gaps are 0.025 to 0.075, the others uniform, so that the mean is 1.
//   * lognormal: exp(z), z of deviation 1, scaled to a mean of 1.
// Many samples then lie between two targets, and their rows are not needed: bytes() is more than
// must move.
#pragma once

#include <cuda_bf16.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "../common/compare.cuh"
#include "../common/device_buffer.cuh"
#include "../common/options.cuh"
#include "../common/random.cuh"
#include "reference.cuh"

namespace sparsek {

// The gaps between the samples of a trajectory: the values of --times, in the order of their names.
enum class Gaps : std::int64_t { kRegular, kBursty, kLognormal };

struct Shape {
  std::int64_t batch = 64;
  std::int64_t steps = 1000;
  std::int64_t targets = 512;
  std::int64_t features = 512;
  std::int64_t shuffled = 0;
  std::int64_t times = static_cast<std::int64_t>(Gaps::kRegular);

  Gaps gaps() const { return static_cast<Gaps>(times); }
  std::int64_t samples() const { return batch * steps; }
  std::int64_t rows_out() const { return batch * targets; }

  // For each element of out a subtraction and a fused multiply-add; weights and conversions are not
  // counted.
  std::uint64_t flop() const { return std::uint64_t(3) * rows_out() * features; }
  // All of source, of both times and of out, each once.
  std::uint64_t bytes() const {
    return std::uint64_t(samples() + rows_out()) *
           (features * sizeof(__nv_bfloat16) + sizeof(float));
  }

  std::vector<IntegerOption> options() {
    constexpr std::int64_t most = std::int64_t(1) << 24;
    return {
        {"--batch", "trajectories", &batch, 1, most},
        {"--steps", "samples of a trajectory", &steps, 1, most},
        {"--targets", "times at which a trajectory is wanted", &targets, 1, most},
        {"--features", "values of a sample", &features, 1, most},
        {"--shuffled", "1: the targets of a trajectory in random order", &shuffled, 0, 1},
        {"--times", "gaps between samples: regular, bursty or lognormal", &times, 0, 2, kGapNames},
    };
  }

  // Ends the process for what no variant can do.
  void require() const {
    constexpr std::int64_t most = std::int64_t(1) << 32;
    const auto too_many = [](std::int64_t rows, std::int64_t columns) {
      return rows > most / columns;
    };
    // The check keys an element by a 32-bit index.
    if (too_many(rows_out(), features)) usage_error("the output has more than 2^32 elements");
    if (too_many(samples(), features)) usage_error("the source has more than 2^32 elements");
    // Kernels number the rows with an int.
    constexpr std::int64_t most_rows = std::int64_t(1) << 30;
    if (rows_out() > most_rows || samples() > most_rows) {
      usage_error("there are more than 2^30 samples or targets");
    }
  }

  std::string describe() const {
    return "batch " + std::to_string(batch) + ", steps " + std::to_string(steps) + ", targets " +
           std::to_string(targets) + ", features " + std::to_string(features) +
           (shuffled != 0 ? ", shuffled" : "") +
           (gaps() == Gaps::kRegular ? std::string() : std::string(", ") + kGapNames[times]);
  }

  inline static const std::vector<const char*> kGapNames = {"regular", "bursty", "lognormal"};
};

// Ends the process if a row is not a whole number of 16-byte vectors.
inline void require_whole_vectors(const Shape& shape) {
  if (shape.features % 8 == 0) return;
  usage_error("--features " + std::to_string(shape.features) +
              " is not a multiple of 8, the bf16 values of a 16-byte access");
}

// Ends the process if a pointer or a row is not aligned to 16 bytes.
inline void require_aligned(const Operands& p) {
  require_multiple_of_16(p.source, "the source");
  require_multiple_of_16(p.out, "the output");
  require_multiple_of_16(p.features * sizeof(*p.source),
                         "a row of " + std::to_string(p.features) + " features");
}

// Values of N(0, 1).
__global__ void fill_source(__nv_bfloat162* __restrict__ out, std::size_t pairs,
                            std::uint64_t key) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < pairs;
       i += stride) {
    const float2 pair = normal_pair(random_bits(key, i), 1.0f);
    out[i] = __floats2bfloat162_rn(pair.x, pair.y);
  }
}

inline double uniform(std::uint64_t key, std::uint64_t counter) {
  return static_cast<double>(random_bits(key, counter) >> 11) * 0x1p-53;
}

// exp(x) for |x| <= 6 with additions and products alone, so that every C library and processor
// gives the same bits: the Taylor series of exp(x / 64), to the 64th power.
inline double exponential(double x) {
  const double part = x / 64;
  double sum = 1, term = 1;
  for (int i = 1; i <= 10; ++i) {
    term *= part / i;
    sum += term;
  }
  for (int i = 0; i < 6; ++i) sum *= sum;
  return sum;
}

// The gap before a sample, up to a factor. Each draw has 16 counters of its own.
inline double draw_gap(Gaps gaps, std::uint64_t key, std::uint64_t draw) {
  const std::uint64_t counter = 16 * draw;
  const double u = uniform(key, counter);
  if (gaps == Gaps::kBursty) {
    constexpr double inside = 0.05;               // of a burst, on average
    constexpr double between = 16 - 15 * inside;  // so that the mean of all is 1
    const bool pause = random_bits(key, counter + 1) >> 60 == 0;
    return pause ? 2 * between * u : inside * (0.5 + u);
  }
  // Twelve uniform values have a variance of 1.
  double normal = u - 6;
  for (int i = 1; i < 12; ++i) normal += uniform(key, counter + i);
  return exponential(normal);
}

// The times of a trajectory's samples from 0 to steps - 1 with these gaps.
inline void append_with_gaps(const Shape& shape, std::uint64_t key, std::uint64_t first_draw,
                             std::vector<float>& times) {
  std::vector<double> places(1, 0.0);
  for (std::int64_t j = 1; j < shape.steps; ++j) {
    places.push_back(places.back() + draw_gap(shape.gaps(), key, first_draw + j));
  }
  const double total = places.back();
  const double scale = total > 0 ? static_cast<double>(shape.steps - 1) / total : 0.0;
  for (const double place : places) times.push_back(static_cast<float>(place * scale));
}

inline std::vector<float> draw_source_times(const Shape& shape, std::uint64_t key,
                                            std::uint64_t gap_key) {
  std::vector<float> times;
  times.reserve(shape.samples());
  std::uint64_t draws = 0;
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    const bool regular = shape.gaps() == Gaps::kRegular;
    if (!regular) append_with_gaps(shape, gap_key, draws, times);
    for (std::int64_t j = 0; j < shape.steps; ++j, ++draws) {
      if (regular) {
        const double time = static_cast<double>(j) + 0.3 * uniform(key, 2 * draws + 1);
        times.push_back(static_cast<float>(time));
      }
      const bool repeated = j > 0 && random_bits(key, 2 * draws) >> 57 == 0;
      if (repeated) times[draws] = times[draws - 1];
    }
  }
  return times;
}

inline std::vector<float> draw_target_times(const Shape& shape, std::uint64_t key) {
  std::vector<float> times;
  times.reserve(shape.rows_out());
  const double spacing =
      static_cast<double>(shape.steps + 1) / static_cast<double>(shape.targets);
  std::uint64_t draws = 0;
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    for (std::int64_t t = 0; t < shape.targets; ++t, ++draws) {
      const double place = static_cast<double>(t) + 0.45 + 0.1 * uniform(key, 2 * draws);
      times.push_back(static_cast<float>(place * spacing - 1.0));
    }
    if (shape.shuffled == 0) continue;
    // Fisher-Yates.
    float* const row = times.data() + b * shape.targets;
    for (std::int64_t t = shape.targets - 1; t > 0; --t) {
      const std::uint64_t draw = random_bits(key, 2 * (draws - t) + 1) >> 32;
      std::swap(row[t], row[(draw * std::uint64_t(t + 1)) >> 32]);
    }
  }
  return times;
}

// The operands in device memory: the same seeds give the same bits in every variant and mode.
class Problem {
 public:
  using Shape = sparsek::Shape;
  using Operands = sparsek::Operands;
  static constexpr const char* kTolerance = kToleranceInWords;

  // The times come from the first seed, since they decide which samples are read; the values of
  // these from the second.
  Problem(const Shape& shape, std::uint64_t seed, std::uint64_t value_seed)
      // An even count, since values are drawn in pairs.
      : source_((shape.samples() * shape.features + 1) / 2 * 2),
        source_times_(draw_source_times(shape, stream_key(seed, 0), stream_key(seed, 3))),
        target_times_(draw_target_times(shape, stream_key(seed, 1))),
        out_(shape.rows_out() * shape.features),
        shape_(shape) {
    fill_source<<<2048, 256>>>(reinterpret_cast<__nv_bfloat162*>(source_.data()),
                               source_.bytes() / sizeof(__nv_bfloat162), stream_key(value_seed, 2));
    SPARSEK_CUDA_CHECK(cudaGetLastError());
    SPARSEK_CUDA_CHECK(cudaDeviceSynchronize());
  }

  Operands operands() const {
    return {source_.data(),
            source_times_.data(),
            target_times_.data(),
            out_.data(),
            static_cast<int>(shape_.batch),
            static_cast<int>(shape_.steps),
            static_cast<int>(shape_.targets),
            static_cast<int>(shape_.features)};
  }

  void poison_output() { out_.poison(); }
  std::uint64_t flop() const { return shape_.flop(); }
  std::uint64_t bytes() const { return shape_.bytes(); }

  Comparison compare() const {
    return sparsek::compare(Reference{operands()}, shape_.rows_out() * shape_.features);
  }

 private:
  DeviceBuffer<__nv_bfloat16> source_;
  DeviceBuffer<float> source_times_;
  DeviceBuffer<float> target_times_;
  DeviceBuffer<__nv_bfloat16> out_;
  Shape shape_;
};

}  // namespace sparsek
