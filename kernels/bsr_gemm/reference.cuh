// The independent reference: one thread an output element, no tiles, no tensor cores, and the
// comparison of the whole output with it.
//
// Tolerance, element by element:  |got - expected| <= K * 2^-23 * sum |a_ik * b_kj|
// with K the number of products in the element (32 for each block of A's block-row). In an empty
// block-row the tolerance is 0, and only zeros are right.
//   * A product of two fp16 or two bf16 values is exact in fp32, and in the tensor cores.
//   * A chain of fp32 additions in any order, each truncated rather than rounded, errs by at most
//     2^-23 of the running magnitude per addition: K * 2^-23 * sum |a*b|.
//   * A tensor core adds T >= 4 products and the accumulator at once: it aligns the T + 1 terms to
//     the largest and truncates, with at least one bit more than fp32 keeps (2^-24 a term), then
//     truncates the sum (2^-23). Over the K/T steps: K * (1 + 3/T) * 2^-24 * sum |a*b|, at most
//     1.75 * K * 2^-24 and so inside the same bound. (Alignment, extra bits and truncation as
//     measured by Fasi et al., PeerJ CS 330 (2021), and Khattak and Mikaitis, arXiv:2512.07004.)
//   * The reference's own error, K * 2^-53 of the same sum, is negligible.
// A missing or doubled product is typically far outside the bound.
#pragma once

#include <cuda_fp16.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "../common/cuda_check.cuh"
#include "../common/device_buffer.cuh"
#include "../common/result.cuh"
#include "problem.cuh"

namespace sparsek {

constexpr const char* kToleranceInWords =
    "|got - expected| <= K * 2^-23 * sum|a*b| for each element, K = products in the element";

struct Expected {
  double value;
  double tolerance;
};

struct Tally {
  unsigned long long wrong;
  unsigned long long max_error_bits;  // of a double >= 0: the bits order as the number does
  unsigned long long worst;           // the largest worst_key
};

__device__ inline Expected reference_element(const Operands& p, int row, int column) {
  const int block_row = row / kBlockRows;
  const int row_in_block = row % kBlockRows;
  const int first = p.row_offsets[block_row];
  const int last = p.row_offsets[block_row + 1];
  double sum = 0;
  double magnitude = 0;
  for (int block = first; block < last; ++block) {
    const Element* a = p.values + static_cast<std::size_t>(block) * kBlockElements +
                      row_in_block * kBlockCols;
    const Element* b =
        p.b + static_cast<std::size_t>(p.columns[block]) * kBlockCols * p.n + column;
#pragma unroll 8
    for (int k = 0; k < kBlockCols; ++k) {
      const float product = to_float(a[k]) * to_float(b[static_cast<std::size_t>(k) * p.n]);
      sum += static_cast<double>(product);
      magnitude += fabs(static_cast<double>(product));
    }
  }
  return {sum, (last - first) * kBlockCols * 0x1p-23 * magnitude};
}

// NaN in either place counts as infinite.
__device__ inline double as_error(double value) { return isnan(value) ? INFINITY : value; }

__device__ inline double error_over_tolerance(double error, double tolerance) {
  return error == 0 ? 0.0 : as_error(error / tolerance);
}

// The larger key is the worse element; among equals the lower index wins.
__device__ inline unsigned long long worst_key(double ratio, std::uint32_t index) {
  const auto bits = static_cast<unsigned long long>(__float_as_uint(static_cast<float>(ratio)));
  return bits << 32 | ~index;
}

__device__ inline unsigned long long warp_max(unsigned long long value) {
  for (int lane = 16; lane > 0; lane /= 2) {
    const unsigned long long other = __shfl_xor_sync(0xFFFFFFFFu, value, lane);
    value = other > value ? other : value;
  }
  return value;
}

constexpr int kCheckColumns = 64;  // of C, for one thread block
constexpr int kCheckRows = 8;

__global__ void __launch_bounds__(kCheckColumns * kCheckRows)
    reference_compare(Operands p, Tally* __restrict__ tally) {
  static_assert(kBlockRows % kCheckRows == 0, "no thread block of the check may run past C");
  const int row = blockIdx.y * kCheckRows + threadIdx.y;
  const int column = blockIdx.x * kCheckColumns + threadIdx.x;
  const std::size_t index = static_cast<std::size_t>(row) * p.n + column;

  const Expected expected = reference_element(p, row, column);
  const double error = fabs(static_cast<double>(p.c[index]) - expected.value);
  const bool wrong = !(error <= expected.tolerance);
  const double ratio = error_over_tolerance(error, expected.tolerance);

  const unsigned long long max_error = warp_max(__double_as_longlong(as_error(error)));
  const unsigned long long worst = warp_max(worst_key(ratio, static_cast<std::uint32_t>(index)));
  const int wrong_in_block = __syncthreads_count(wrong);
  const int thread = threadIdx.y * kCheckColumns + threadIdx.x;
  if (thread % 32 == 0) {
    atomicMax(&tally->max_error_bits, max_error);
    atomicMax(&tally->worst, worst);
  }
  if (thread == 0 && wrong_in_block != 0) {
    atomicAdd(&tally->wrong, static_cast<unsigned long long>(wrong_in_block));
  }
}

__global__ void reference_explain(Operands p, int row, int column, Expected* expected) {
  *expected = reference_element(p, row, column);
}

struct WorstElement {
  int row, column;
  float got;
  Expected expected;
};

struct Comparison {
  CheckOutcome outcome;
  WorstElement worst;
};

inline Comparison compare_with_reference(const Shape& shape, const Operands& operands) {
  const DeviceBuffer<Tally> tally(std::vector<Tally>{Tally{}});
  const dim3 grid(operands.n / kCheckColumns, operands.m / kCheckRows);
  reference_compare<<<grid, dim3(kCheckColumns, kCheckRows)>>>(operands, tally.data());
  SPARSEK_CUDA_CHECK(cudaGetLastError());
  Tally host{};
  SPARSEK_CUDA_CHECK(cudaMemcpy(&host, tally.data(), sizeof host, cudaMemcpyDeviceToHost));

  Comparison comparison{};
  CheckOutcome& outcome = comparison.outcome;
  outcome.checked = std::uint64_t(shape.m) * shape.n;
  outcome.wrong = host.wrong;
  std::memcpy(&outcome.max_abs_error, &host.max_error_bits, sizeof outcome.max_abs_error);
  const auto ratio_bits = static_cast<std::uint32_t>(host.worst >> 32);
  float ratio = 0;
  std::memcpy(&ratio, &ratio_bits, sizeof ratio);
  outcome.max_error_over_tolerance = ratio;

  WorstElement& worst = comparison.worst;
  const std::uint32_t index = ~static_cast<std::uint32_t>(host.worst);
  worst.row = static_cast<int>(index / shape.n);
  worst.column = static_cast<int>(index % shape.n);
  const DeviceBuffer<Expected> expected(1);
  reference_explain<<<1, 1>>>(operands, worst.row, worst.column, expected.data());
  SPARSEK_CUDA_CHECK(cudaGetLastError());
  SPARSEK_CUDA_CHECK(cudaMemcpy(&worst.expected, expected.data(), sizeof worst.expected,
                                cudaMemcpyDeviceToHost));
  SPARSEK_CUDA_CHECK(
      cudaMemcpy(&worst.got, operands.c + index, sizeof worst.got, cudaMemcpyDeviceToHost));
  return comparison;
}

}  // namespace sparsek
