// bsr_gemm for the common harness.
#pragma once

#include <string>
#include <vector>

#include "../common/harness.cuh"
#include "problem.cuh"
#include "reference.cuh"

namespace sparsek {

// TileN: N must be a multiple of it.
template <int TileN>
class BsrGemm : public Problem {
 public:
  using Operands = sparsek::Operands;
  static constexpr const char* kTolerance = kToleranceInWords;

  struct Shape : sparsek::Shape {
    std::vector<IntegerOption> options() { return shape_options(*this); }
    void require() const { require_supported(*this, TileN); }
    std::string describe() const {
      return "m " + std::to_string(m) + ", n " + std::to_string(n) + ", k " + std::to_string(k) +
             (irregular != 0 ? ", up to " : ", ") + std::to_string(blocks_per_row) +
             " blocks a block-row" + (shuffled_columns != 0 ? ", shuffled columns" : "") +
             kElementSuffix;
    }
  };

  BsrGemm(const Shape& shape, std::uint64_t seed, std::uint64_t value_seed)
      : Problem(shape, seed, value_seed), elements_(std::uint64_t(shape.m) * shape.n) {}

  Comparison compare() const {
    return sparsek::compare(BsrGemmReference{operands()}, elements_);
  }

 private:
  std::uint64_t elements_;
};

}  // namespace sparsek
