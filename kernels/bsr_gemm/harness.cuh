// What every variant's main does: inputs, launches, check, times, result file.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "../common/device.cuh"
#include "../common/options.cuh"
#include "../common/result.cuh"
#include "../common/timing.cuh"
#include "problem.cuh"
#include "reference.cuh"

namespace sparsek {

struct Variant {
  const char* name;                 // of the kernel, as a profiler shows it
  int tile_n;                       // N must be a multiple
  void (*prepare)();                // once, before any launch; null: nothing to do
  // Asynchronous, on the default stream. Ends the process with kExitUsage, before the kernel
  // starts, where the kernel cannot do the block-rows of these operands.
  void (*launch)(const Operands&);
};

inline void report_check(const Comparison& comparison) {
  const CheckOutcome& outcome = comparison.outcome;
  const WorstElement& worst = comparison.worst;
  std::FILE* stream = outcome.correct() ? stdout : stderr;
  std::fprintf(stream, "check: %s, %llu of %llu elements outside the tolerance\n",
               outcome.correct() ? "right" : "WRONG",
               static_cast<unsigned long long>(outcome.wrong),
               static_cast<unsigned long long>(outcome.checked));
  std::fprintf(stream,
               "worst: row %d, col %d: got %.9g, expected %.9g, tolerance %.3g (error/tolerance "
               "%.3g); largest absolute error %.3g\n",
               worst.row, worst.column, worst.got, worst.expected.value, worst.expected.tolerance,
               outcome.max_error_over_tolerance, outcome.max_abs_error);
}

inline void report_times(const Result& result) {
  const auto [fastest, slowest] =
      std::minmax_element(result.times_us.begin(), result.times_us.end());
  const double median_us = *median(result.times_us);
  std::printf("time: median %.2f us (%.2f to %.2f) of %lld launches, %.1f TFLOP/s; L2 as the "
              "launch before left it\n",
              median_us, *fastest, *slowest, static_cast<long long>(result.launches),
              static_cast<double>(result.flop) / median_us * 1e-6);
}

inline int run(int argc, char** argv, const Variant& variant) {
  Shape shape;
  const Options options = parse_options(argc, argv, shape_options(shape));
  // An earlier run's file must not be taken for this run's.
  if (!options.result_path.empty()) std::remove(options.result_path.c_str());
  require_supported(shape, variant.tile_n);

  const cudaDeviceProp device = require_device(9, 0);
  std::printf("%s on %s: m %lld, n %lld, k %lld, %s%lld blocks a block-row%s%s, seed %lld, "
              "values %lld\n",
              variant.name, device.name, static_cast<long long>(shape.m),
              static_cast<long long>(shape.n), static_cast<long long>(shape.k),
              shape.irregular != 0 ? "up to " : "", static_cast<long long>(shape.blocks_per_row),
              shape.shuffled_columns != 0 ? ", shuffled columns" : "", kElementSuffix,
              static_cast<long long>(options.seed), static_cast<long long>(options.value_seed));

  Problem problem(shape, static_cast<std::uint64_t>(options.seed),
                  static_cast<std::uint64_t>(options.value_seed));
  const Operands operands = problem.operands();
  if (variant.prepare != nullptr) variant.prepare();
  const auto launch = [&] {
    variant.launch(operands);
    SPARSEK_CUDA_CHECK(cudaGetLastError());
  };

  Result result{};
  result.kernel = variant.name;
  result.gpu = device.name;
  result.tolerance = kToleranceInWords;
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
      const Comparison comparison = compare_with_reference(shape, operands);
      result.check = comparison.outcome;
      report_check(comparison);
    }
  } else {
    problem.poison_output();
    launch();
    SPARSEK_CUDA_CHECK(cudaDeviceSynchronize());
    const Comparison comparison = compare_with_reference(shape, operands);
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
