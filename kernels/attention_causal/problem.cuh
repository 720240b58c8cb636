// The workload: softmax(Q K^T / sqrt(D)) V for each query head of a batch, where query i sees the
// keys 0 to i; several query heads share a head of keys and values. Q and the output are
// [batch][heads][sequence][features], K and V [batch][kv heads][sequence][features], contiguous,
// bf16; the softmax is fp32. Q, K and V follow each other in one buffer.
#pragma once

#include <cuda_bf16.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "../attention/outliers.cuh"
#include "../common/compare.cuh"
#include "../common/device_buffer.cuh"
#include "../common/options.cuh"
#include "../common/random.cuh"
#include "reference.cuh"

namespace sparsek {

struct AttentionCausalShape {
  std::int64_t batch = 1;
  std::int64_t heads = 32;
  std::int64_t kv_heads = 8;
  std::int64_t sequence = 4096;
  std::int64_t features = kFeatures;
  std::int64_t outliers = 0;

  std::int64_t query_elements() const { return batch * heads * sequence * features; }
  std::int64_t key_elements() const { return batch * kv_heads * sequence * features; }
  // Two products of each query with the keys that it sees. A kernel multiplies more: the masked
  // part of the tiles on the diagonal.
  std::uint64_t flop() const { return std::uint64_t(2) * query_elements() * (sequence + 1); }
  // Q, K, V and the output, each once.
  std::uint64_t bytes() const {
    return std::uint64_t(2) * (query_elements() + key_elements()) * sizeof(__nv_bfloat16);
  }

  std::vector<IntegerOption> options() {
    return {
        {"--batch", "sequences", &batch, 1, 65535},
        {"--heads", "query heads of each", &heads, 1, 65535},
        {"--kv-heads", "key/value heads of each; divides the query heads", &kv_heads, 1, 65535},
        {"--sequence", "queries, and keys, of a head; a multiple of the tile", &sequence, 1,
         std::int64_t(1) << 18},
        {"--features", "of a head; 128", &features, 1, 1024},
        {"--outliers", "1: some queries and keys are 16 times as large", &outliers, 0, 1},
    };
  }

  void require() const {
    if (features != kFeatures) {
      usage_error("--features " + std::to_string(features) + " is not " +
                  std::to_string(kFeatures) + ", what these kernels are written for");
    }
    if (heads % kv_heads != 0) {
      usage_error("--heads " + std::to_string(heads) + " is not a multiple of --kv-heads " +
                  std::to_string(kv_heads));
    }
    if (batch * heads > 65535) {
      usage_error("--batch x --heads is " + std::to_string(batch * heads) +
                  ", more than the 65535 thread blocks of a grid's second dimension");
    }
    // The check keys an element by a 32-bit index.
    if (query_elements() > (std::int64_t(1) << 32)) {
      usage_error("the output has more than 2^32 elements");
    }
    require_sequence_of(kReferenceTile);
  }

  // What a kernel asks for whose tiles have so many queries or keys.
  void require_sequence_of(int tile) const {
    if (sequence % tile == 0) return;
    usage_error("--sequence " + std::to_string(sequence) + " is not a multiple of " +
                std::to_string(tile) + ", this kernel's tile");
  }

  std::string describe() const {
    return "batch " + std::to_string(batch) + ", heads " + std::to_string(heads) + ", kv heads " +
           std::to_string(kv_heads) + ", sequence " + std::to_string(sequence) + ", features " +
           std::to_string(features) + (outliers != 0 ? ", with outliers" : "");
  }
};

// Of the values of Q, K and V: scores over sqrt(D) then have a deviation of 1 too.
constexpr float kSigma = 1.0f;

__global__ void fill_normal_bf16(__nv_bfloat162* __restrict__ out, std::size_t pairs,
                                 std::uint64_t key) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < pairs;
       i += stride) {
    const float2 pair = normal_pair(random_bits(key, i), kSigma);
    out[i] = __floats2bfloat162_rn(pair.x, pair.y);
  }
}

// The operands in device memory: the same seeds give the same bits in every variant and mode.
class AttentionCausal {
 public:
  using Shape = AttentionCausalShape;
  using Operands = AttentionCausalOperands;
  static constexpr const char* kTolerance = kAttentionCausalTolerance;

  // Nothing but values is drawn here.
  AttentionCausal(const Shape& shape, std::uint64_t /*seed*/, std::uint64_t value_seed)
      : inputs_(shape.query_elements() + 2 * shape.key_elements()),
        out_(shape.query_elements()),
        shape_(shape) {
    __nv_bfloat16* const q = inputs_.data();
    __nv_bfloat16* const k = q + shape.query_elements();
    fill(q, shape.query_elements(), stream_key(value_seed, 1));
    fill(k, shape.key_elements(), stream_key(value_seed, 2));
    fill(k + shape.key_elements(), shape.key_elements(), stream_key(value_seed, 3));
    if (shape.outliers != 0) {
      scale_rows_async(q, shape.query_elements(), kFeatures, kOutlierQueries);
      scale_rows_async(k, shape.key_elements(), kFeatures, kOutlierKeys);
    }
    SPARSEK_CUDA_CHECK(cudaDeviceSynchronize());
  }

  Operands operands() const {
    const __nv_bfloat16* const q = inputs_.data();
    const __nv_bfloat16* const k = q + shape_.query_elements();
    const __nv_bfloat16* const v = k + shape_.key_elements();
    return {q,
            k,
            v,
            out_.data(),
            static_cast<int>(shape_.batch * shape_.heads),
            static_cast<int>(shape_.heads / shape_.kv_heads),
            static_cast<int>(shape_.sequence)};
  }

  void poison_output() { out_.poison(); }
  std::uint64_t flop() const { return shape_.flop(); }
  std::uint64_t bytes() const { return shape_.bytes(); }

  Comparison compare() const {
    const DeviceBuffer<Expected> expected(shape_.query_elements());
    const Operands p = operands();
    reference_rows<<<dim3(p.sequence / kReferenceTile, p.heads), kReferenceThreads>>>(
        p, expected.data());
    SPARSEK_CUDA_CHECK(cudaGetLastError());
    return sparsek::compare(AttentionCausalReference{p.out, expected.data()},
                            shape_.query_elements());
  }

 private:
  static void fill(__nv_bfloat16* out, std::size_t count, std::uint64_t key) {
    fill_normal_bf16<<<2048, 256>>>(reinterpret_cast<__nv_bfloat162*>(out), count / 2, key);
    SPARSEK_CUDA_CHECK(cudaGetLastError());
  }

  DeviceBuffer<__nv_bfloat16> inputs_;
  DeviceBuffer<__nv_bfloat16> out_;
  Shape shape_;
};

}  // namespace sparsek
