// The whole output against an independent reference, element by element, on the device.
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "cuda_check.cuh"
#include "device_buffer.cuh"
#include "result.cuh"

namespace sparsek {

// What an element of the output must be: within `tolerance` of `value`.
struct Expected {
  double value;
  double tolerance;
};

struct WorstElement {
  std::uint64_t index;  // in the output, row-major
  double got;
  Expected expected;
};

struct Comparison {
  CheckOutcome outcome;
  WorstElement worst;
};

struct CompareTally {
  unsigned long long wrong;
  unsigned long long max_error_bits;  // of a double >= 0: the bits order as the number does
  unsigned long long worst;           // the largest worst_key
};

// The larger key is the worse element; among equals the lower index wins. Not a number counts as
// infinitely wrong.
__device__ inline unsigned long long worst_key(double error, double tolerance,
                                               std::uint32_t index) {
  double ratio = error == 0 ? 0.0 : error / tolerance;
  if (isnan(ratio)) ratio = INFINITY;
  return static_cast<unsigned long long>(__float_as_uint(static_cast<float>(ratio))) << 32 | ~index;
}

// Reference: `Expected expected(index)` and `double got(index)`, both on the device.
template <typename Reference>
__global__ void compare_with_reference(Reference reference, std::uint64_t count,
                                       CompareTally* __restrict__ tally) {
  const std::uint64_t stride = static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
  for (std::uint64_t i = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       i < count; i += stride) {
    const Expected expected = reference.expected(i);
    double error = fabs(reference.got(i) - expected.value);
    const bool wrong = !(error <= expected.tolerance);
    const auto key = worst_key(error, expected.tolerance, static_cast<std::uint32_t>(i));
    if (isnan(error)) error = INFINITY;
    const auto error_bits = static_cast<unsigned long long>(__double_as_longlong(error));
    // Mostly nothing is worse than what was found, and reading is cheaper than an atomic.
    if (wrong) atomicAdd(&tally->wrong, 1ull);
    if (error_bits > *static_cast<volatile unsigned long long*>(&tally->max_error_bits)) {
      atomicMax(&tally->max_error_bits, error_bits);
    }
    if (key > *static_cast<volatile unsigned long long*>(&tally->worst)) {
      atomicMax(&tally->worst, key);
    }
  }
}

template <typename Reference>
__global__ void explain_element(Reference reference, std::uint64_t index,
                                WorstElement* __restrict__ worst) {
  *worst = {index, reference.got(index), reference.expected(index)};
}

// Compares `count` elements, at most 2^32.
template <typename Reference>
Comparison compare(const Reference& reference, std::uint64_t count) {
  const DeviceBuffer<CompareTally> tally(std::vector<CompareTally>{CompareTally{}});
  compare_with_reference<<<2048, 256>>>(reference, count, tally.data());
  SPARSEK_CUDA_CHECK(cudaGetLastError());
  CompareTally host{};
  SPARSEK_CUDA_CHECK(cudaMemcpy(&host, tally.data(), sizeof host, cudaMemcpyDeviceToHost));

  Comparison comparison{};
  CheckOutcome& outcome = comparison.outcome;
  outcome.checked = count;
  outcome.wrong = host.wrong;
  std::memcpy(&outcome.max_abs_error, &host.max_error_bits, sizeof outcome.max_abs_error);
  const auto ratio_bits = static_cast<std::uint32_t>(host.worst >> 32);
  float ratio = 0;
  std::memcpy(&ratio, &ratio_bits, sizeof ratio);
  outcome.max_error_over_tolerance = ratio;

  const DeviceBuffer<WorstElement> worst(1);
  const std::uint32_t index = ~static_cast<std::uint32_t>(host.worst);
  explain_element<<<1, 1>>>(reference, index, worst.data());
  SPARSEK_CUDA_CHECK(cudaGetLastError());
  SPARSEK_CUDA_CHECK(cudaMemcpy(&comparison.worst, worst.data(), sizeof comparison.worst,
                                cudaMemcpyDeviceToHost));
  return comparison;
}

}  // namespace sparsek
