// The kernel of ../bsr_gemm/cp_async.cu as a function, with the flaws that the faults beside this
// file choose from. Without any of them it has that kernel's instructions; what it does and why is
// said there.
#pragma once

#include <mma.h>

#include "../bsr_gemm/harness.cuh"
#include "../common/cp_async.cuh"

// The name of a kernel as -D gives it, in quotes.
#define RING_QUOTED(name) #name
#define RING_NAME(name) RING_QUOTED(name)

namespace ring {

using namespace nvcuda;
using sparsek::kBlockCols;
using sparsek::kBlockElements;
using sparsek::kBlockRows;
using sparsek::Operands;

// A fault derives from this and hides what it has wrong.
struct NoFault {
  static constexpr int kPadding = 8;          // elements after each row in shared memory
  static constexpr bool kStridedB = false;    // a warp copies 16 bytes of 32 rows of B each
  static constexpr int kExtraBarriers = 0;    // after each row of fragments, needless
  static constexpr bool kStepBarrier = true;  // between everybody's copies and their use
  static constexpr unsigned kLateWarpNs = 0;  // how long the last warp sleeps before its copies
  static constexpr int kLeaveOutEvery = 0;    // of the blocks of a block-row; 0: none left out
  __device__ static void before_the_stores(int /*n*/) {}
};

constexpr int kStages = 4;
constexpr int kTileN = 128;
constexpr int kWarpsM = 2;
constexpr int kWarpsN = 2;
constexpr int kWarps = kWarpsM * kWarpsN;
constexpr int kThreads = 32 * kWarps;
constexpr int kMinBlocks = 2;
constexpr int kWarpTileM = kBlockRows / kWarpsM;
constexpr int kWarpTileN = kTileN / kWarpsN;
constexpr int kFragment = 16;
constexpr int kFragmentsM = kWarpTileM / kFragment;
constexpr int kFragmentsN = kWarpTileN / kFragment;
constexpr int kVector = 8;  // fp16 elements in a 16-byte copy
constexpr int kVectorsA = kBlockElements / kVector / kThreads;
constexpr int kVectorsB = kBlockCols * kTileN / kVector / kThreads;

constexpr int kSlabStride = kWarpTileN + 8;
constexpr int kSlabElements = kFragment * kSlabStride;
constexpr int kLanesPerRow = kWarpTileN / 4;
constexpr int kRowsPerStore = 32 / kLanesPerRow;

using FragmentA = wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major>;
using FragmentB = wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major>;
using Accumulator = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

template <typename Fault>
constexpr int kStrideA = kBlockCols + Fault::kPadding;
template <typename Fault>
constexpr int kStrideB = kTileN + Fault::kPadding;
template <typename Fault>
constexpr int kElementsA = kBlockRows * kStrideA<Fault>;
template <typename Fault>
constexpr int kStageElements = kElementsA<Fault> + kBlockCols * kStrideB<Fault>;
template <typename Fault>
constexpr int kRingBytes = kStages * kStageElements<Fault> * static_cast<int>(sizeof(__half));

// Where the blocks end that are done, counted from the first without those left out.
template <typename Fault>
__device__ __forceinline__ int end_of_done(int first, int last) {
  if constexpr (Fault::kLeaveOutEvery == 0) return last;
  else return last - (last - first) / Fault::kLeaveOutEvery;
}

// The block of A that such a count stands for.
template <typename Fault>
__device__ __forceinline__ int block_at(int first, int count) {
  if constexpr (Fault::kLeaveOutEvery == 0) return count;
  else return count + (count - first) / (Fault::kLeaveOutEvery - 1);
}

// One 128x128 tile of C.
template <typename Fault>
__device__ __forceinline__ void compute_tile(const __half* __restrict__ values,
                                             const int* __restrict__ columns,
                                             const int* __restrict__ row_offsets,
                                             const __half* __restrict__ b, float* __restrict__ c,
                                             int n) {
  extern __shared__ __align__(128) unsigned char shared[];
  __half* const ring = reinterpret_cast<__half*>(shared);

  const int thread = threadIdx.x;
  const int warp = thread / 32;
  const int lane = thread % 32;
  const int warp_row = warp / kWarpsN * kWarpTileM;
  const int warp_column = warp % kWarpsN * kWarpTileN;
  const int tile_row = blockIdx.x * kBlockRows;
  const int tile_column = blockIdx.y * kTileN;
  const int first = row_offsets[blockIdx.x];
  const int last = end_of_done<Fault>(first, row_offsets[blockIdx.x + 1]);

  // Producer.
  int next_block = first;
  const auto request_next = [&](int stage) {
    if (Fault::kLateWarpNs > 0 && warp == kWarps - 1) __nanosleep(Fault::kLateWarpNs);
    if (next_block < last) {
      const int block = block_at<Fault>(first, next_block);
      const __half* block_a = values + static_cast<std::size_t>(block) * kBlockElements;
      const __half* block_b =
          b + static_cast<std::size_t>(columns[block]) * kBlockCols * n + tile_column;
      ++next_block;

      __half* stage_a = ring + stage * kStageElements<Fault>;
      __half* stage_b = stage_a + kElementsA<Fault>;
#pragma unroll
      for (int i = 0; i < kVectorsA; ++i) {
        const int element = (thread + i * kThreads) * kVector;
        const int row = element / kBlockCols, column = element % kBlockCols;
        sparsek::cp_async_16(stage_a + row * kStrideA<Fault> + column, block_a + element);
      }
#pragma unroll
      for (int i = 0; i < kVectorsB; ++i) {
        const int vector = thread + i * kThreads;
        const int element = vector * kVector;
        const int row = Fault::kStridedB ? vector % kBlockCols : element / kTileN;
        const int column = Fault::kStridedB ? vector / kBlockCols * kVector : element % kTileN;
        sparsek::cp_async_16(stage_b + row * kStrideB<Fault> + column,
                             block_b + static_cast<std::size_t>(row) * n + column);
      }
    }
    sparsek::cp_async_commit();
  };

  Accumulator sums[kFragmentsM][kFragmentsN];
#pragma unroll
  for (int i = 0; i < kFragmentsM; ++i) {
#pragma unroll
    for (int j = 0; j < kFragmentsN; ++j) wmma::fill_fragment(sums[i][j], 0.0f);
  }

  for (int stage = 0; stage < kStages - 1; ++stage) request_next(stage);

  int full_stage = 0;
  int free_stage = kStages - 1;
  for (int block = first; block < last; ++block) {
    sparsek::cp_async_wait<kStages - 2>();
    if constexpr (Fault::kStepBarrier) __syncthreads();
    request_next(free_stage);

    // Consumer.
    const __half* stage_a = ring + full_stage * kStageElements<Fault>;
    const __half* stage_b = stage_a + kElementsA<Fault>;
#pragma unroll
    for (int k = 0; k < kBlockCols; k += kFragment) {
      FragmentB fragments_b[kFragmentsN];
#pragma unroll
      for (int j = 0; j < kFragmentsN; ++j) {
        wmma::load_matrix_sync(fragments_b[j],
                               stage_b + k * kStrideB<Fault> + warp_column + j * kFragment,
                               kStrideB<Fault>);
      }
#pragma unroll
      for (int i = 0; i < kFragmentsM; ++i) {
        FragmentA fragment_a;
        wmma::load_matrix_sync(fragment_a,
                               stage_a + (warp_row + i * kFragment) * kStrideA<Fault> + k,
                               kStrideA<Fault>);
#pragma unroll
        for (int j = 0; j < kFragmentsN; ++j) {
          wmma::mma_sync(sums[i][j], fragment_a, fragments_b[j], sums[i][j]);
        }
#pragma unroll
        for (int extra = 0; extra < Fault::kExtraBarriers; ++extra) __syncthreads();
      }
    }

    full_stage = full_stage + 1 == kStages ? 0 : full_stage + 1;
    free_stage = free_stage + 1 == kStages ? 0 : free_stage + 1;
  }

  // Epilogue.
  __syncthreads();
  Fault::before_the_stores(n);
  float* const slab = reinterpret_cast<float*>(shared) + warp * kSlabElements;
  const int lane_row = lane / kLanesPerRow;
  const int lane_column = lane % kLanesPerRow * 4;
  float* const warp_c = c + static_cast<std::size_t>(tile_row + warp_row) * n + tile_column +
                        warp_column + lane_column;
#pragma unroll
  for (int i = 0; i < kFragmentsM; ++i) {
#pragma unroll
    for (int j = 0; j < kFragmentsN; ++j) {
      wmma::store_matrix_sync(slab + j * kFragment, sums[i][j], kSlabStride, wmma::mem_row_major);
    }
    __syncwarp();
#pragma unroll
    for (int r = 0; r < kFragment; r += kRowsPerStore) {
      const int row = r + lane_row;
      const float4 sum =
          *reinterpret_cast<const float4*>(slab + row * kSlabStride + lane_column);
      __stcs(reinterpret_cast<float4*>(warp_c + static_cast<std::size_t>(i * kFragment + row) * n),
             sum);
    }
    __syncwarp();
  }
}

using Kernel = void(const __half* __restrict__ values, const int* __restrict__ columns,
                    const int* __restrict__ row_offsets, const __half* __restrict__ b,
                    float* __restrict__ c, int n);

// What the kernel needs before its first launch.
template <typename Fault, Kernel kernel>
void prepare() {
  SPARSEK_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                          kRingBytes<Fault>));
  SPARSEK_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                          cudaSharedmemCarveoutMaxShared));
}

template <typename Fault, Kernel kernel>
void launch(const Operands& p) {
  const dim3 grid(p.m / kBlockRows, p.n / kTileN);
  constexpr int bytes = kRingBytes<Fault>;
  kernel<<<grid, kThreads, bytes>>>(p.values, p.columns, p.row_offsets, p.b, p.c, p.n);
}

template <typename Fault, Kernel kernel>
int run(int argc, char** argv, const char* name) {
  return sparsek::run<sparsek::BsrGemm<kTileN>>(
      argc, argv, {name, nullptr, prepare<Fault, kernel>, launch<Fault, kernel>});
}

}  // namespace ring
