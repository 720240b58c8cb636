// Device memory that frees itself.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <vector>

#include "cuda_check.cuh"

namespace sparsek {

template <typename T>
class DeviceBuffer {
 public:
  explicit DeviceBuffer(std::size_t count) : count_(count) {
    SPARSEK_CUDA_CHECK(cudaMalloc(&data_, count * sizeof(T)));
  }
  explicit DeviceBuffer(const std::vector<T>& host) : DeviceBuffer(host.size()) {
    SPARSEK_CUDA_CHECK(cudaMemcpy(data_, host.data(), bytes(), cudaMemcpyHostToDevice));
  }
  ~DeviceBuffer() { cudaFree(data_); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  T* data() const { return data_; }
  std::size_t bytes() const { return count_ * sizeof(T); }

  // Fills with 0xFF bytes: NaN in every floating-point format, so an unwritten element cannot pass.
  void poison() { SPARSEK_CUDA_CHECK(cudaMemset(data_, 0xFF, bytes())); }

 private:
  T* data_ = nullptr;
  std::size_t count_;
};

}  // namespace sparsek
