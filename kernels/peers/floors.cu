// Programs that only move data, whose times are the floors of the kernels: a stream that reads and
// writes as many bytes as a problem must, and the copies of Q, K and V into shared memory alone. A
// shared object with a C interface, as bind.cu.
//
// Each has a check: what it writes depends on all that it reads, so that a program that moves less
// than it claims is found.
#include <cuda_runtime.h>

#include <cstdint>

#include "../../kernels/common/bulk.cuh"
#include "../../kernels/common/cuda_check.cuh"
#include "../../kernels/common/dependent_launch.cuh"
#include "../../kernels/common/device_buffer.cuh"

namespace {

constexpr int kThreads = 256;

constexpr int kLineVectors = 8;  // 128 bytes

// Of thread block `block`: contiguous vectors of the input and of the output.
struct Part {
  std::int64_t first, last;
};

// Whole lines, but for the end: a line in two parts may be moved twice. With parts that begin
// anywhere the stream of bsr_gemm took 112 us; with whole lines, and 2 % less to move, 104 us (two
// H200s, 2026-11-26).
__host__ __device__ Part part_of(std::int64_t vectors, std::int64_t block, std::int64_t blocks) {
  const std::int64_t lines = (vectors + kLineVectors - 1) / kLineVectors;
  const std::int64_t first = lines * block / blocks, last = lines * (block + 1) / blocks;
  return {first * kLineVectors, min(last * kLineVectors, vectors)};
}

bool parts_are_all(std::int64_t vectors, std::int64_t blocks) {
  std::int64_t end = 0;
  for (std::int64_t block = 0; block < blocks; ++block) {
    const Part part = part_of(vectors, block, blocks);
    if (part.first != end || part.last < end) return false;
    end = part.last;
  }
  return end == vectors;
}

__device__ __forceinline__ uint4 mixed(uint4 a, const uint4& b) {
  return {a.x ^ b.x, a.y ^ b.y, a.z ^ b.z, a.w ^ b.w};
}

// What a thread writes to the vector at `place` of the output.
__device__ __forceinline__ uint4 written(uint4 sum, std::int64_t place) {
  sum.x ^= static_cast<unsigned>(place);
  return sum;
}

// Each thread block reads its part of the input, then writes its part of the output. Other thread
// blocks of the multiprocessor write meanwhile.
template <int kUnrolled>
__global__ void __launch_bounds__(kThreads)
    stream(const uint4* in, std::int64_t in_vectors, uint4* out, std::int64_t out_vectors) {
  sparsek::launch_dependents();
  sparsek::wait_for_prerequisites();
  const Part read = part_of(in_vectors, blockIdx.x, gridDim.x);
  const Part write = part_of(out_vectors, blockIdx.x, gridDim.x);
  uint4 sum{};
#pragma unroll kUnrolled
  for (std::int64_t i = read.first + threadIdx.x; i < read.last; i += kThreads) {
    sum = mixed(sum, __ldcs(in + i));
  }
#pragma unroll kUnrolled
  for (std::int64_t i = write.first + threadIdx.x; i < write.last; i += kThreads) {
    __stcs(out + i, written(sum, i));
  }
}

__global__ void check_stream(const uint4* in, std::int64_t in_vectors, const uint4* out,
                             std::int64_t out_vectors, std::int64_t blocks,
                             unsigned long long* wrong) {
  // One thread for each thread of the stream.
  const std::int64_t block = blockIdx.x;
  const Part read = part_of(in_vectors, block, blocks);
  const Part write = part_of(out_vectors, block, blocks);
  uint4 sum{};
  for (std::int64_t i = read.first + threadIdx.x; i < read.last; i += kThreads) {
    sum = mixed(sum, in[i]);
  }
  for (std::int64_t i = write.first + threadIdx.x; i < write.last; i += kThreads) {
    const uint4 expected = written(sum, i), got = out[i];
    if (got.x != expected.x || got.y != expected.y || got.z != expected.z ||
        got.w != expected.w) {
      atomicAdd(wrong, 1ull);
    }
  }
}

constexpr int kFeatures = 64;
constexpr int kQueries = 64;  // of a thread block
constexpr int kRowBytes = kFeatures * 2;

// A thread block copies its queries, and all keys and values of a head, into shared memory, and
// waits for them. Then it writes the last word of each to the output: [block][3].
__global__ void __launch_bounds__(128, 1)
    copies(const char* q, const char* k, const char* v, std::uint32_t* out, int sequence) {
  extern __shared__ __align__(128) char shared[];
  __shared__ sparsek::Barrier full;
  sparsek::launch_dependents();
  if (threadIdx.x == 0) {
    sparsek::barrier_init(&full, 1);
    sparsek::barrier_init_fence();
    const int per_head = sequence / kQueries;
    const std::int64_t head = blockIdx.x / per_head;
    const int queries = kQueries * kRowBytes, keys = sequence * kRowBytes;
    sparsek::wait_for_prerequisites();
    sparsek::barrier_arrive_expect(&full, queries + 2 * keys);
    sparsek::bulk_load(shared, q + std::int64_t{blockIdx.x} * queries, queries, &full);
    // Parts of 16 KB: one large copy has fewer requests under way.
    constexpr int part = 16 * 1024;
    for (int at = 0; at < keys; at += part) {
      const int bytes = min(part, keys - at);
      sparsek::bulk_load(shared + queries + at, k + head * keys + at, bytes, &full);
    }
    for (int at = 0; at < keys; at += part) {
      const int bytes = min(part, keys - at);
      sparsek::bulk_load(shared + queries + keys + at, v + head * keys + at, bytes, &full);
    }
    sparsek::barrier_wait(&full, 0);
    const auto last_word = [&](int end) {
      return *reinterpret_cast<const std::uint32_t*>(shared + end - 4);
    };
    out[3 * blockIdx.x] = last_word(queries);
    out[3 * blockIdx.x + 1] = last_word(queries + keys);
    out[3 * blockIdx.x + 2] = last_word(queries + 2 * keys);
  }
}

__global__ void check_copies(const char* q, const char* k, const char* v, const std::uint32_t* out,
                             int sequence, unsigned long long* wrong) {
  const auto word = [](const char* end) {
    return *reinterpret_cast<const std::uint32_t*>(end - 4);
  };
  const std::int64_t block = blockIdx.x;
  const std::int64_t keys = std::int64_t{sequence} * kRowBytes;
  const std::int64_t head = block / (sequence / kQueries);
  const std::uint32_t expected[] = {word(q + (block + 1) * kQueries * kRowBytes),
                                    word(k + (head + 1) * keys), word(v + (head + 1) * keys)};
  for (int i = 0; i < 3; ++i) {
    if (out[3 * block + i] != expected[i]) atomicAdd(wrong, 1ull);
  }
}

template <typename Launch>
std::uint64_t count_wrong(const Launch& launch) {
  const sparsek::DeviceBuffer<unsigned long long> wrong(std::vector<unsigned long long>{0});
  launch(wrong.data());
  SPARSEK_CUDA_CHECK(cudaGetLastError());
  unsigned long long host = 0;
  SPARSEK_CUDA_CHECK(cudaStreamSynchronize(cudaStreamPerThread));
  SPARSEK_CUDA_CHECK(cudaMemcpy(&host, wrong.data(), sizeof host, cudaMemcpyDeviceToHost));
  return host;
}

}  // namespace

extern "C" {

void allow_dependent(int allowed) { sparsek::dependent_launches.allowed = allowed != 0; }

// `unrolled` is 4 or 8. Sizes are in vectors of 16 bytes.
void stream_launch(const void* in, std::int64_t in_vectors, void* out, std::int64_t out_vectors,
                   int blocks, int unrolled) {
  const auto kernel = unrolled == 8 ? stream<8> : stream<4>;
  sparsek::launch_dependent(kernel, static_cast<unsigned>(blocks), kThreads, 0,
                            static_cast<const uint4*>(in), in_vectors, static_cast<uint4*>(out),
                            out_vectors);
}

// The number of vectors of the output that are wrong; all of them where the parts leave any out.
std::uint64_t stream_check(const void* in, std::int64_t in_vectors, const void* out,
                           std::int64_t out_vectors, int blocks) {
  if (!parts_are_all(in_vectors, blocks) || !parts_are_all(out_vectors, blocks)) {
    return out_vectors;
  }
  return count_wrong([&](unsigned long long* wrong) {
    check_stream<<<blocks, kThreads>>>(static_cast<const uint4*>(in), in_vectors,
                                       static_cast<const uint4*>(out), out_vectors, blocks, wrong);
  });
}

void copies_launch(const char* q, const char* k, const char* v, std::uint32_t* out, int heads,
                   int sequence) {
  const int bytes = (kQueries + 2 * sequence) * kRowBytes;
  static int allowed = 0;
  if (bytes > allowed) {
    SPARSEK_CUDA_CHECK(
        cudaFuncSetAttribute(copies, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    allowed = bytes;
  }
  sparsek::launch_dependent(copies, static_cast<unsigned>(heads * (sequence / kQueries)), 128u,
                            static_cast<std::size_t>(bytes), q, k, v, out, sequence);
}

std::uint64_t copies_check(const char* q, const char* k, const char* v, const std::uint32_t* out,
                           int heads, int sequence) {
  return count_wrong([&](unsigned long long* wrong) {
    check_copies<<<heads * (sequence / kQueries), 1>>>(q, k, v, out, sequence, wrong);
  });
}

}  // extern "C"
