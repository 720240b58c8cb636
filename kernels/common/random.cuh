// Counter-based random numbers: element i depends on the key and i alone, on host and device alike.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "cuda_check.cuh"

namespace sparsek {

// The output function of SplitMix64 (Steele, Lea, Flood 2014).
__host__ __device__ inline std::uint64_t mix64(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

__host__ __device__ inline std::uint64_t random_bits(std::uint64_t key, std::uint64_t counter) {
  return mix64(key + (counter + 1) * 0x9E3779B97F4A7C15ull);
}

// Keys of different streams under one seed are unrelated.
inline std::uint64_t stream_key(std::uint64_t seed, std::uint64_t stream) {
  return mix64(mix64(seed) + stream * 0xD1B54A32D192ED03ull);
}

// Box-Muller: two values of N(0, sigma^2) from one 64-bit draw. 24-bit uniforms: the tails end at
// 5.8 sigma.
__device__ __forceinline__ float2 normal_pair(std::uint64_t bits, float sigma) {
  const float u = static_cast<float>((bits >> 40) + 1) * 0x1p-24f;
  const float v = static_cast<float>((bits >> 8) & 0xFFFFFF) * 0x1p-24f;
  const float radius = sigma * sqrtf(-2.0f * logf(u));
  float sine, cosine;
  sincospif(2.0f * v, &sine, &cosine);
  return {radius * cosine, radius * sine};
}

__global__ void fill_normal(__half2* __restrict__ out, std::size_t pairs, std::uint64_t key,
                            float sigma) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < pairs;
       i += stride) {
    const float2 pair = normal_pair(random_bits(key, i), sigma);
    out[i] = __floats2half2_rn(pair.x, pair.y);
  }
}

inline void fill_normal_async(__half* out, std::size_t count, std::uint64_t key, float sigma) {
  fill_normal<<<2048, 256>>>(reinterpret_cast<__half2*>(out), count / 2, key, sigma);
  SPARSEK_CUDA_CHECK(cudaGetLastError());
}

}  // namespace sparsek
