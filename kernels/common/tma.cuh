// Bulk tensor copies (TMA): tensor maps on the host, one PTX instruction a wrapper on the device.
#pragma once

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "cuda_check.cuh"
#include "mbarrier.cuh"

namespace sparsek {

constexpr CUtensorMapDataType tensor_map_type(const __half*) {
  return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
}
constexpr CUtensorMapDataType tensor_map_type(const __nv_bfloat16*) {
  return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
}
constexpr CUtensorMapDataType tensor_map_type(const float*) {
  return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
}

// A row-major matrix, copied in boxes of box_rows x box_columns.
template <typename T>
CUtensorMap matrix_map(const T* data, std::uint64_t rows, std::uint64_t columns,
                       std::uint32_t box_rows, std::uint32_t box_columns,
                       CUtensorMapSwizzle swizzle) {
  // Through the runtime, so that the program links against no driver library.
  static const auto encode = [] {
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found{};
    SPARSEK_CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000,
                                                        cudaEnableDefault, &found));
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(entry);
  }();
  const cuuint64_t sizes[] = {columns, rows};
  const cuuint64_t pitches[] = {columns * sizeof(T)};
  const cuuint32_t box[] = {box_columns, box_rows};
  const cuuint32_t steps[] = {1, 1};
  CUtensorMap map{};
  const CUresult status = encode(&map, tensor_map_type(data), 2, const_cast<T*>(data), sizes,
                                 pitches, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                                 CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                                 CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS) {
    std::fprintf(stderr, "cuTensorMapEncodeTiled: error %d\n", static_cast<int>(status));
    std::exit(kExitCudaError);
  }
  return map;
}

__device__ __forceinline__ void tma_prefetch_map(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];\n" ::"l"(map) : "memory");
}

// Copies the box at (row, column) into shared memory; the bytes count towards `barrier`.
__device__ __forceinline__ void tma_load(void* shared, const CUtensorMap* map, int row, int column,
                                         Barrier* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3, %4}], [%2];\n" ::"r"(shared_address(shared)),
      "l"(map), "r"(shared_address(barrier)), "r"(column), "r"(row)
      : "memory");
}

// Copies shared memory to the box at (row, column), as part of this thread's open group. What other
// threads wrote there needs async_proxy_fence by each of them, and a barrier, before.
__device__ __forceinline__ void tma_store(const CUtensorMap* map, int row, int column,
                                          const void* shared) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];\n"
               ::"l"(map),
               "r"(shared_address(shared)), "r"(column), "r"(row)
               : "memory");
}

// An L2 policy for what is not read again: it goes first when room is needed.
__device__ __forceinline__ std::uint64_t policy_evict_first() {
  std::uint64_t policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;\n" : "=l"(policy));
  return policy;
}

// tma_store under an L2 policy.
__device__ __forceinline__ void tma_store_hinted(const CUtensorMap* map, int row, int column,
                                                 const void* shared, std::uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group.L2::cache_hint"
      " [%0, {%2, %3}], [%1], %4;\n" ::"l"(map),
      "r"(shared_address(shared)), "r"(column), "r"(row), "l"(policy)
      : "memory");
}

// Orders this thread's ordinary accesses to shared memory before what the copy engine does there
// later. Two uses: stores that the engine then copies, and reads before an arrival that hands the
// memory back to the engine, as an arrival alone orders ordinary accesses only.
__device__ __forceinline__ void async_proxy_fence() {
  asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
}

// Closes the group of this thread's bulk stores since the last commit.
__device__ __forceinline__ void tma_store_commit() {
  asm volatile("cp.async.bulk.commit_group;\n" ::: "memory");
}

// Waits until at most Pending of this thread's latest groups still read shared memory.
template <int Pending>
__device__ __forceinline__ void tma_store_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;\n" ::"n"(Pending) : "memory");
}

}  // namespace sparsek
