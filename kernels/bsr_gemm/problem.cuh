// The workload: C[M,N] = A * B. A is block-sparse in BSR form, B dense row-major, both fp16, or
// bf16 with ELEMENT_BF16; accumulation and C in fp32. By default every block-row of A has the same
// number of blocks, at distinct columns in ascending order. With --irregular 1 the numbers differ,
// and with --shuffled-columns 1 the columns of a block-row are in random order.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "../common/device_buffer.cuh"
#include "../common/options.cuh"
#include "../common/random.cuh"

// 1: A and B in bf16. Only kernels that are written for Element compile with it.
#ifndef ELEMENT_BF16
#define ELEMENT_BF16 0
#endif

namespace sparsek {

#if ELEMENT_BF16
using Element = __nv_bfloat16;
constexpr const char* kElementSuffix = ", bf16";
__device__ __forceinline__ float to_float(Element value) { return __bfloat162float(value); }

// As fill_normal of random.cuh: the same draws, rounded to bf16.
__global__ void fill_normal(__nv_bfloat162* __restrict__ out, std::size_t pairs, std::uint64_t key,
                            float sigma) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < pairs;
       i += stride) {
    const float2 pair = normal_pair(random_bits(key, i), sigma);
    out[i] = __floats2bfloat162_rn(pair.x, pair.y);
  }
}

inline void fill_normal_async(__nv_bfloat16* out, std::size_t count, std::uint64_t key,
                              float sigma) {
  fill_normal<<<2048, 256>>>(reinterpret_cast<__nv_bfloat162*>(out), count / 2, key, sigma);
  SPARSEK_CUDA_CHECK(cudaGetLastError());
}
#else
using Element = __half;
constexpr const char* kElementSuffix = "";
__device__ __forceinline__ float to_float(Element value) { return __half2float(value); }
#endif

constexpr int kBlockRows = 128;  // rows of one block of A
constexpr int kBlockCols = 32;   // columns of one block of A
constexpr int kBlockElements = kBlockRows * kBlockCols;
constexpr float kSigma = 0.02f;  // of the values of A and B

struct Shape {
  std::int64_t m = 8192;
  std::int64_t n = 8192;
  std::int64_t k = 8192;
  std::int64_t blocks_per_row = 16;  // with `irregular` the most
  std::int64_t irregular = 0;
  std::int64_t shuffled_columns = 0;

  std::int64_t block_rows() const { return m / kBlockRows; }
  std::int64_t block_columns() const { return k / kBlockCols; }
};

// Which blocks A has.
struct Structure {
  std::vector<int> row_offsets;  // [block_rows + 1], first block of each block-row
  std::vector<int> columns;      // [blocks], block column of each block

  std::int64_t blocks() const { return static_cast<std::int64_t>(columns.size()); }
};

// What a kernel is launched on; all pointers but the last are device pointers.
struct Operands {
  const Element* values;   // [blocks][128][32]
  const int* columns;      // [blocks], block column of each block
  const int* row_offsets;  // [block_rows + 1], first block of each block-row
  const Element* b;        // [k][n]
  float* c;                // [m][n]
  int m, n, k;
  const int* host_row_offsets;  // row_offsets in host memory, to check them before a launch
};

inline std::vector<IntegerOption> shape_options(Shape& shape) {
  constexpr std::int64_t most = std::int64_t(1) << 18;
  return {
      {"--m", "rows of A and C, a multiple of 128", &shape.m, 1, most},
      {"--n", "columns of B and C, a multiple of the tile width", &shape.n, 1, most},
      {"--k", "columns of A, a multiple of 32", &shape.k, 1, most},
      {"--blocks-per-row", "128x32 blocks in each block-row of A", &shape.blocks_per_row, 1, most},
      {"--irregular", "1: each block-row has its own number of blocks, from 0 to --blocks-per-row",
       &shape.irregular, 0, 1},
      {"--shuffled-columns", "1: the columns of a block-row in random order",
       &shape.shuffled_columns, 0, 1},
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

// The numbers of blocks of all block-rows. Of two irregular block-rows or more, one at a random
// place is empty and another one full. A single one is full, so that A always has a block.
inline std::vector<int> draw_block_counts(const Shape& shape, std::uint64_t key) {
  const int rows = static_cast<int>(shape.block_rows());
  const int most = static_cast<int>(shape.blocks_per_row);
  std::vector<int> counts(rows, most);
  if (shape.irregular == 0 || rows == 1) return counts;
  std::uint64_t draws = 0;
  const auto draw_below = [&](int end) {
    const std::uint64_t draw = random_bits(key, draws++) >> 32;
    return static_cast<int>((draw * std::uint64_t(end)) >> 32);
  };
  for (int& count : counts) count = draw_below(most + 1);
  const int empty = draw_below(rows);
  const int full = (empty + 1 + draw_below(rows - 1)) % rows;
  counts[empty] = 0;
  counts[full] = most;
  return counts;
}

// The block columns of all block-rows: a partial Fisher-Yates shuffle draws the distinct columns of
// one, and marking them gives their ascending order.
inline Structure draw_structure(const Shape& shape, std::uint64_t seed) {
  const std::vector<int> counts = draw_block_counts(shape, stream_key(seed, 3));
  const std::uint64_t key = stream_key(seed, 0);
  const int choices = static_cast<int>(shape.block_columns());
  Structure structure;
  structure.row_offsets.push_back(0);
  structure.columns.reserve(std::accumulate(counts.begin(), counts.end(), std::size_t(0)));
  std::vector<int> deck(choices);
  std::uint64_t draws = 0;
  for (const int wanted : counts) {
    std::iota(deck.begin(), deck.end(), 0);
    std::vector<bool> kept(choices, false);
    for (int i = 0; i < wanted; ++i) {
      const std::uint64_t draw = random_bits(key, draws++) >> 32;
      const int pick = i + static_cast<int>((draw * std::uint64_t(choices - i)) >> 32);
      std::swap(deck[i], deck[pick]);
      kept[deck[i]] = true;
    }
    if (shape.shuffled_columns != 0) {
      structure.columns.insert(structure.columns.end(), deck.begin(), deck.begin() + wanted);
    } else {
      for (int column = 0; column < choices; ++column) {
        if (kept[column]) structure.columns.push_back(column);
      }
    }
    structure.row_offsets.push_back(static_cast<int>(structure.columns.size()));
  }
  return structure;
}

// The operands in device memory: the same seeds give the same bits in every variant and mode.
class Problem {
 public:
  // The columns come from the first seed, since they decide the times; the values from the second.
  Problem(const Shape& shape, std::uint64_t seed, std::uint64_t value_seed)
      : structure_(draw_structure(shape, seed)),
        values_(structure_.blocks() * kBlockElements),
        columns_(structure_.columns),
        row_offsets_(structure_.row_offsets),
        b_(shape.k * shape.n),
        c_(shape.m * shape.n),
        shape_(shape) {
    fill_normal_async(values_.data(), structure_.blocks() * kBlockElements,
                      stream_key(value_seed, 1), kSigma);
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
            static_cast<int>(shape_.k),
            structure_.row_offsets.data()};
  }

  void poison_output() { c_.poison(); }

  std::int64_t blocks() const { return structure_.blocks(); }
  // Of the blocks that A really has.
  std::uint64_t flop() const {
    return std::uint64_t(2) * blocks() * kBlockElements * shape_.n;
  }
  // A's values, its indices, all of B and C, each once.
  std::uint64_t bytes() const {
    return std::uint64_t(blocks()) * kBlockElements * sizeof(Element) +
           std::uint64_t(blocks() + shape_.block_rows() + 1) * sizeof(int) +
           std::uint64_t(shape_.k) * shape_.n * sizeof(Element) +
           std::uint64_t(shape_.m) * shape_.n * sizeof(float);
  }

 private:
  Structure structure_;
  DeviceBuffer<Element> values_;
  DeviceBuffer<int> columns_;
  DeviceBuffer<int> row_offsets_;
  DeviceBuffer<Element> b_;
  DeviceBuffer<float> c_;
  Shape shape_;
};

}  // namespace sparsek
