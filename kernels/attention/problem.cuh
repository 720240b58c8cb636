// The workload: softmax(Q K^T / sqrt(D)) V for each head of a batch, without a mask. Q, K, V and
// the output are [batch][heads][sequence][features], contiguous, fp16; the softmax is fp32. Q, K
// and V follow each other in one buffer, as a model's projection leaves them.
#pragma once

#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "../common/compare.cuh"
#include "../common/device_buffer.cuh"
#include "../common/options.cuh"
#include "../common/random.cuh"
#include "outliers.cuh"
#include "reference.cuh"

namespace sparsek {

// Of the values of Q, K and V: scores over sqrt(D) then have a deviation of 1 too, so that the
// softmax is neither flat nor decided by one key.
constexpr float kSigma = 1.0f;

struct AttentionShape {
  std::int64_t batch = 2;
  std::int64_t heads = 8;
  std::int64_t sequence = 512;
  std::int64_t features = kFeatures;
  std::int64_t outliers = 0;

  std::int64_t elements() const { return batch * heads * sequence * features; }
  // Two products of sequence x sequence x features a head.
  std::uint64_t flop() const { return std::uint64_t(4) * elements() * sequence; }
  // Q, K, V and the output, each once.
  std::uint64_t bytes() const { return std::uint64_t(4) * elements() * sizeof(__half); }

  std::vector<IntegerOption> options() {
    return {
        {"--batch", "sequences", &batch, 1, 65535},
        {"--heads", "heads of each", &heads, 1, 65535},
        {"--sequence", "queries, and keys, of a head; a multiple of the tile", &sequence, 1,
         std::int64_t(1) << 18},
        {"--features", "of a head; 64", &features, 1, 1024},
        {"--outliers", "1: some queries and keys are 16 times as large", &outliers, 0, 1},
    };
  }

  void require() const {
    if (features != kFeatures) {
      usage_error("--features " + std::to_string(features) + " is not " +
                  std::to_string(kFeatures) + ", what these kernels are written for");
    }
    if (batch * heads > 65535) {
      usage_error("--batch x --heads is " + std::to_string(batch * heads) +
                  ", more than the 65535 thread blocks of a grid's second dimension");
    }
    // The check keys an element by a 32-bit index.
    if (elements() > (std::int64_t(1) << 32)) usage_error("the output has more than 2^32 elements");
  }

  // What a kernel asks for whose tiles have so many queries or keys.
  void require_sequence_of(int tile) const {
    if (sequence % tile == 0) return;
    usage_error("--sequence " + std::to_string(sequence) + " is not a multiple of " +
                std::to_string(tile) + ", this kernel's tile");
  }

  std::string describe() const {
    return "batch " + std::to_string(batch) + ", heads " + std::to_string(heads) + ", sequence " +
           std::to_string(sequence) + ", features " + std::to_string(features) +
           (outliers != 0 ? ", with outliers" : "");
  }
};

// The operands in device memory: the same seeds give the same bits in every variant and mode.
class Attention {
 public:
  using Shape = AttentionShape;
  using Operands = AttentionOperands;
  static constexpr const char* kTolerance = kAttentionTolerance;

  // Nothing but values is drawn here.
  Attention(const Shape& shape, std::uint64_t /*seed*/, std::uint64_t value_seed)
      : inputs_(3 * shape.elements()), out_(shape.elements()), shape_(shape) {
    for (int i = 0; i < 3; ++i) {
      fill_normal_async(inputs_.data() + i * shape.elements(), shape.elements(),
                        stream_key(value_seed, 1 + i), kSigma);
    }
    if (shape.outliers != 0) {
      __half* const q = inputs_.data();
      scale_rows_async(q, shape.elements(), kFeatures, kOutlierQueries);
      scale_rows_async(q + shape.elements(), shape.elements(), kFeatures, kOutlierKeys);
    }
    SPARSEK_CUDA_CHECK(cudaDeviceSynchronize());
  }

  Operands operands() const {
    const __half* const q = inputs_.data();
    const __half* const k = q + shape_.elements();
    const __half* const v = k + shape_.elements();
    return {q, k, v, out_.data(), static_cast<int>(shape_.batch * shape_.heads),
            static_cast<int>(shape_.sequence)};
  }

  void poison_output() { out_.poison(); }
  std::uint64_t flop() const { return shape_.flop(); }
  std::uint64_t bytes() const { return shape_.bytes(); }

  Comparison compare() const {
    return sparsek::compare(AttentionReference{operands()}, shape_.elements());
  }

 private:
  DeviceBuffer<__half> inputs_;
  DeviceBuffer<__half> out_;
  Shape shape_;
};

}  // namespace sparsek
