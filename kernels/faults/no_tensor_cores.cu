// Slow on purpose, bsr_gemm_no_tensor_cores: the baseline's tiles and copies, multiplied by plain
// fp32 instructions instead of the tensor cores. Its numbers are right; tensor cores that never run
// and the time show it.
//
// Thread block: 4 warps, a thread every 16th row by two runs of 8 columns of C, 128 sums.
// Shared memory: that of the baseline, 18,944 bytes.
#define BSR_GEMM_BODY_ONLY
#include "../bsr_gemm/baseline.cu"

namespace {

using baseline::kStrideA;
using baseline::kStrideB;
using baseline::kThreads;
using baseline::kTileN;
using baseline::kVector;
using baseline::kVectorsA;
using baseline::kVectorsB;
using sparsek::kBlockCols;
using sparsek::kBlockElements;
using sparsek::kBlockRows;

constexpr int kRun = 8;   // neighbouring columns of a thread
constexpr int kRuns = 2;  // of them, half a tile apart
constexpr int kThreadColumns = kTileN / kRun / kRuns;
constexpr int kThreadRows = kThreads / kThreadColumns;
constexpr int kRows = kBlockRows / kThreadRows;  // of a thread, kThreadRows apart

static_assert(kRows * kRun * kRuns * kThreads == kBlockRows * kTileN, "the threads cover the tile");

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads)
    bsr_gemm_no_tensor_cores(const __half* __restrict__ values, const int* __restrict__ columns,
                             const int* __restrict__ row_offsets, const __half* __restrict__ b,
                             float* __restrict__ c, int n) {
  __shared__ __align__(128) __half shared_a[kBlockRows * kStrideA];
  __shared__ __align__(128) __half shared_b[kBlockCols * kStrideB];

  const int thread = threadIdx.x;
  const int thread_row = thread / kThreadColumns;
  const int thread_column = thread % kThreadColumns * kRun;
  const int tile_row = blockIdx.x * kBlockRows;
  const int tile_column = blockIdx.y * kTileN;

  float sums[kRows][kRuns][kRun] = {};

  for (int block = row_offsets[blockIdx.x]; block < row_offsets[blockIdx.x + 1]; ++block) {
    const __half* block_a = values + static_cast<std::size_t>(block) * kBlockElements;
    const __half* block_b =
        b + static_cast<std::size_t>(columns[block]) * kBlockCols * n + tile_column;

    __syncthreads();
#pragma unroll
    for (int i = 0; i < kVectorsA; ++i) {
      const int element = (thread + i * kThreads) * kVector;
      const int row = element / kBlockCols, column = element % kBlockCols;
      *reinterpret_cast<uint4*>(shared_a + row * kStrideA + column) =
          *reinterpret_cast<const uint4*>(block_a + element);
    }
#pragma unroll
    for (int i = 0; i < kVectorsB; ++i) {
      const int element = (thread + i * kThreads) * kVector;
      const int row = element / kTileN, column = element % kTileN;
      *reinterpret_cast<uint4*>(shared_b + row * kStrideB + column) =
          *reinterpret_cast<const uint4*>(block_b + static_cast<std::size_t>(row) * n + column);
    }
    __syncthreads();

    // Plain multiply-adds, one column of A and one row of B at a time.
#pragma unroll 2
    for (int k = 0; k < kBlockCols; ++k) {
      float column_a[kRows];
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        column_a[i] = __half2float(shared_a[(thread_row + i * kThreadRows) * kStrideA + k]);
      }
#pragma unroll
      for (int run = 0; run < kRuns; ++run) {
        const uint4 vector = *reinterpret_cast<const uint4*>(
            shared_b + k * kStrideB + run * (kTileN / kRuns) + thread_column);
        const __half* row_b = reinterpret_cast<const __half*>(&vector);
#pragma unroll
        for (int j = 0; j < kRun; ++j) {
          const float element_b = __half2float(row_b[j]);
#pragma unroll
          for (int i = 0; i < kRows; ++i) sums[i][run][j] += column_a[i] * element_b;
        }
      }
    }
  }

  // Epilogue: sums straight to C.
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    float* row = c + static_cast<std::size_t>(tile_row + thread_row + i * kThreadRows) * n +
                 tile_column + thread_column;
#pragma unroll
    for (int run = 0; run < kRuns; ++run) {
#pragma unroll
      for (int j = 0; j < kRun; j += 4) {
        const float* sum = sums[i][run] + j;
        *reinterpret_cast<float4*>(row + run * (kTileN / kRuns) + j) =
            make_float4(sum[0], sum[1], sum[2], sum[3]);
      }
    }
  }
}

static void launch(const sparsek::Operands& p) {
  bsr_gemm_no_tensor_cores<<<baseline::grid(p), kThreads>>>(p.values, p.columns, p.row_offsets,
                                                            p.b, p.c, p.n);
}

int main(int argc, char** argv) {
  return sparsek::run<sparsek::BsrGemm<kTileN>>(
      argc, argv, {"bsr_gemm_no_tensor_cores", nullptr, nullptr, launch});
}
