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

#include "../common/compare.cuh"
#include "problem.cuh"

namespace sparsek {

constexpr const char* kToleranceInWords =
    "|got - expected| <= K * 2^-23 * sum|a*b| for each element, K = products in the element";

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

// The whole output, row-major, for the comparison of compare.cuh.
struct BsrGemmReference {
  Operands p;

  __device__ Expected expected(std::uint64_t index) const {
    return reference_element(p, static_cast<int>(index / p.n), static_cast<int>(index % p.n));
  }
  __device__ double got(std::uint64_t index) const { return p.c[index]; }
};

}  // namespace sparsek
