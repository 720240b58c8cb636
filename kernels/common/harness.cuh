// What the main of every variant of a family does: inputs, launches, check, times, result file.
//
// A family is described by its Problem:
//   Shape           the sizes, with their defaults; options(), the command line's; require(), which
//                   ends the process for sizes outside the family; describe(), the sizes in words
//   Operands        what a kernel is launched on
//   kTolerance      the rule of the check in words
//   Problem(shape, seed, value_seed), operands(), poison_output(), compare() with the reference,
//                   flop() and bytes() of a launch
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>

#include "compare.cuh"
#include "cuda_check.cuh"
#include "device.cuh"
#include "options.cuh"
#include "result.cuh"
#include "timing.cuh"

namespace sparsek {

template <typename Problem>
struct Variant {
  const char* name;                                       // of the kernel, as a profiler shows it
  void (*require)(const typename Problem::Shape&);        // ends the process for sizes the kernel
                                                          // cannot do; null: it does all
  void (*prepare)();                                      // once, before any launch; null: nothing
  // Asynchronous, on the default stream. Ends the process with kExitUsage, before the kernel
  // starts, where the kernel cannot do these operands.
  void (*launch)(const typename Problem::Operands&);
};

inline void report_check(const Comparison& comparison) {
  const CheckOutcome& outcome = comparison.outcome;
  const WorstElement& worst = comparison.worst;
  std::FILE* const stream = outcome.correct() ? stdout : stderr;
  std::fprintf(stream, "check: %s, %llu of %llu elements outside the tolerance\n",
               outcome.correct() ? "right" : "WRONG",
               static_cast<unsigned long long>(outcome.wrong),
               static_cast<unsigned long long>(outcome.checked));
  std::fprintf(stream,
               "worst: element %llu: got %.9g, expected %.9g, tolerance %.3g (error/tolerance "
               "%.3g); largest absolute error %.3g\n",
               static_cast<unsigned long long>(worst.index), worst.got, worst.expected.value,
               worst.expected.tolerance, outcome.max_error_over_tolerance, outcome.max_abs_error);
}

inline void report_times(const Result& result) {
  const auto [fastest, slowest] =
      std::minmax_element(result.times_us.begin(), result.times_us.end());
  const double median_us = *median(result.times_us);
  std::printf("time: median %.2f us (%.2f to %.2f) of %lld launches, %.1f GB/s, %.1f TFLOP/s; L2 as "
              "the launch before left it\n",
              median_us, *fastest, *slowest, static_cast<long long>(result.launches),
              static_cast<double>(result.bytes) / median_us * 1e-3,
              static_cast<double>(result.flop) / median_us * 1e-6);
}

template <typename Problem>
int run(int argc, char** argv, const Variant<Problem>& variant) {
  typename Problem::Shape shape;
  const Options options = parse_options(argc, argv, shape.options());
  // An earlier run's file must not be taken for this run's.
  if (!options.result_path.empty()) std::remove(options.result_path.c_str());
  shape.require();
  if (variant.require != nullptr) variant.require(shape);

  const cudaDeviceProp device = require_device(9, 0);
  std::printf("%s on %s: %s, seed %lld, values %lld\n", variant.name, device.name,
              shape.describe().c_str(), static_cast<long long>(options.seed),
              static_cast<long long>(options.value_seed));

  Problem problem(shape, static_cast<std::uint64_t>(options.seed),
                  static_cast<std::uint64_t>(options.value_seed));
  const auto operands = problem.operands();
  if (variant.prepare != nullptr) variant.prepare();
  const auto launch = [&] {
    variant.launch(operands);
    SPARSEK_CUDA_CHECK(cudaGetLastError());
  };

  Result result{};
  result.kernel = variant.name;
  result.gpu = device.name;
  result.tolerance = Problem::kTolerance;
  result.flop = problem.flop();
  result.bytes = problem.bytes();

  if (options.mode == Mode::kProfile) {
    // What is measured is checked: the output of the last launch, in the same process.
    const bool checked = !options.result_path.empty();
    if (checked) problem.poison_output();
    for (std::int64_t i = 0; i < options.launches; ++i) launch();
    SPARSEK_CUDA_CHECK(cudaDeviceSynchronize());
    result.launches = options.launches;
    std::printf("profile: %lld launches%s\n", static_cast<long long>(options.launches),
                checked ? "" : ", output not checked");
    if (checked) {
      const Comparison comparison = problem.compare();
      result.check = comparison.outcome;
      report_check(comparison);
    }
  } else {
    problem.poison_output();
    launch();
    SPARSEK_CUDA_CHECK(cudaDeviceSynchronize());
    const Comparison comparison = problem.compare();
    result.check = comparison.outcome;
    report_check(comparison);
  }

  const bool correct = !result.check || result.check->correct();
  if (options.mode == Mode::kTime && correct) {
    result.times_us = time_launches_us(options.warmup, options.launches, launch);
    result.launches = options.launches;
    report_times(result);
  }

  if (!options.result_path.empty()) write_result(options.result_path, result);
  return correct ? kExitOk : kExitWrongNumbers;
}

}  // namespace sparsek
