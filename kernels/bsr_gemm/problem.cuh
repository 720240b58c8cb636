// The workload: C[M,N] = A * B. A is block-sparse in BSR form, B dense row-major, both fp16;
// accumulation and C in fp32. Every block-row of A holds the same number of blocks, at distinct
// columns in ascending order.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "../common/device_buffer.cuh"
#include "../common/options.cuh"
#include "../common/random.cuh"

namespace sparsek {

constexpr int kBlockRows = 128;  // rows of one block of A
constexpr int kBlockCols = 32;   // columns of one block of A
constexpr int kBlockElements = kBlockRows * kBlockCols;
constexpr float kSigma = 0.02f;  // of the values of A and B

struct Shape {
  std::int64_t m = 8192;
  std::int64_t n = 8192;
  std::int64_t k = 8192;
  std::int64_t blocks_per_row = 16;

  std::int64_t block_rows() const { return m / kBlockRows; }
  std::int64_t block_columns() const { return k / kBlockCols; }
  std::int64_t blocks() const { return block_rows() * blocks_per_row; }
  std::int64_t products_per_element() const { return blocks_per_row * kBlockCols; }

  std::uint64_t flop() const { return std::uint64_t(2) * m * n * products_per_element(); }
  // A's values, its indices, all of B and C, each once.
  std::uint64_t bytes() const {
    return std::uint64_t(blocks()) * kBlockElements * sizeof(__half) +
           std::uint64_t(blocks() + block_rows() + 1) * sizeof(int) +
           std::uint64_t(k) * n * sizeof(__half) + std::uint64_t(m) * n * sizeof(float);
  }
};

// What a kernel is launched on; all pointers are device pointers.
struct Operands {
  const __half* values;    // [blocks][128][32]
  const int* columns;      // [blocks], block column of each block
  const int* row_offsets;  // [block_rows + 1], first block of each block-row
  const __half* b;         // [k][n]
  float* c;                // [m][n]
  int m, n, k;
};

inline std::vector<IntegerOption> shape_options(Shape& shape) {
  constexpr std::int64_t most = std::int64_t(1) << 18;
  return {
      {"--m", "rows of A and C, a multiple of 128", &shape.m, 1, most},
      {"--n", "columns of B and C, a multiple of the tile width", &shape.n, 1, most},
      {"--k", "columns of A, a multiple of 32", &shape.k, 1, most},
      {"--blocks-per-row", "128x32 blocks in each block-row of A", &shape.blocks_per_row, 1, most},
  };
}

// Ends the process if the kernel with this tile width cannot do the shape exactly.
inline void require_supported(const Shape& shape, int tile_n) {
  const auto require_multiple = [](const char* flag, std::int64_t value, int of, const char* why) {
    if (value % of == 0) return;
    usage_error(std::string(flag) + " " + std::to_string(value) + " is not a multiple of " +
                std::to_string(of) + ", " + why);
  };
  require_multiple("--m", shape.m, kBlockRows, "the rows of a block of A");
  require_multiple("--n", shape.n, tile_n, "this kernel's tile width");
  require_multiple("--k", shape.k, kBlockCols, "the columns of a block of A");
  if (shape.blocks_per_row > shape.block_columns()) {
    usage_error("--blocks-per-row " + std::to_string(shape.blocks_per_row) +
                " does not fit in the " + std::to_string(shape.block_columns()) +
                " block columns of --k " +
                std::to_string(shape.k));
  }
  // The check keys an element by a 32-bit index.
  if (shape.m * shape.n > (std::int64_t(1) << 32)) usage_error("C has more than 2^32 elements");
}

// The block columns of all block-rows: a partial Fisher-Yates shuffle draws the distinct columns of
// one, and marking them gives their ascending order.
inline std::vector<int> draw_columns(const Shape& shape, std::uint64_t key) {
  const int choices = static_cast<int>(shape.block_columns());
  const int wanted = static_cast<int>(shape.blocks_per_row);
  std::vector<int> columns;
  columns.reserve(shape.blocks());
  std::vector<int> deck(choices);
  std::uint64_t draws = 0;
  for (std::int64_t block_row = 0; block_row < shape.block_rows(); ++block_row) {
    std::iota(deck.begin(), deck.end(), 0);
    std::vector<bool> kept(choices, false);
    for (int i = 0; i < wanted; ++i) {
      const std::uint64_t draw = random_bits(key, draws++) >> 32;
      const int pick = i + static_cast<int>((draw * std::uint64_t(choices - i)) >> 32);
      std::swap(deck[i], deck[pick]);
      kept[deck[i]] = true;
    }
    for (int column = 0; column < choices; ++column) {
      if (kept[column]) columns.push_back(column);
    }
  }
  return columns;
}

// The operands in device memory: the same seeds give the same bits in every variant and mode.
class Problem {
 public:
  // The columns come from the first seed, since they decide the times; the values from the second.
  Problem(const Shape& shape, std::uint64_t seed, std::uint64_t value_seed)
      : values_(shape.blocks() * kBlockElements),
        columns_(draw_columns(shape, stream_key(seed, 0))),
        row_offsets_(uniform_offsets(shape)),
        b_(shape.k * shape.n),
        c_(shape.m * shape.n),
        shape_(shape) {
    fill_normal_async(values_.data(), shape.blocks() * kBlockElements, stream_key(value_seed, 1), kSigma);
    fill_normal_async(b_.data(), shape.k * shape.n, stream_key(value_seed, 2), kSigma);
    SPARSEK_CUDA_CHECK(cudaDeviceSynchronize());
  }

  Operands operands() const {
    return {values_.data(),
            columns_.data(),
            row_offsets_.data(),
            b_.data(),
            c_.data(),
            static_cast<int>(shape_.m),
            static_cast<int>(shape_.n),
            static_cast<int>(shape_.k)};
  }

  void poison_output() { c_.poison(); }

 private:
  static std::vector<int> uniform_offsets(const Shape& shape) {
    std::vector<int> offsets;
    for (std::int64_t i = 0; i <= shape.block_rows(); ++i) {
      offsets.push_back(static_cast<int>(i * shape.blocks_per_row));
    }
    return offsets;
  }

  DeviceBuffer<__half> values_;
  DeviceBuffer<int> columns_;
  DeviceBuffer<int> row_offsets_;
  DeviceBuffer<__half> b_;
  DeviceBuffer<float> c_;
  Shape shape_;
};

}  // namespace sparsek
