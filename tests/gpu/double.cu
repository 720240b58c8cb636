// Doubles a vector on the GPU, in the ways in which a profiler can be limited to a part of a program.
// A library for double.py: a Python process with it starts in a tenth of the time of PyTorch's.

#include <cstdint>
#include <cstdio>

#include <cuda_profiler_api.h>
#include <cuda_runtime.h>

namespace {

constexpr int64_t kLength = int64_t{1} << 26;

__global__ void double_vector(const float* source, float* target) {
  const int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  target[at] = 2.0f * source[at];
}

#define CHECK(call)                                                        \
  do {                                                                     \
    const cudaError_t error = (call);                                      \
    if (error != cudaSuccess) {                                            \
      std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error)); \
      return 1;                                                            \
    }                                                                      \
  } while (0)

}  // namespace

// 0 where the last launch doubled the vector.
extern "C" int double_vectors(int launches, int profiler_range, int graph) {
  float *source = nullptr, *target = nullptr;
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaMalloc(&source, kLength * sizeof(float)));
  CHECK(cudaMalloc(&target, kLength * sizeof(float)));
  // 0x3f3f3f3f is 0.747...; not written by a kernel, which would be profiled too.
  CHECK(cudaMemsetAsync(source, 0x3f, kLength * sizeof(float), stream));
  const auto launch = [&] { double_vector<<<kLength / 256, 256, 0, stream>>>(source, target); };
  cudaGraphExec_t replay = nullptr;
  if (graph) {
    cudaGraph_t recorded;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    launch();
    CHECK(cudaStreamEndCapture(stream, &recorded));
    CHECK(cudaGraphInstantiate(&replay, recorded, 0));
  }
  CHECK(cudaStreamSynchronize(stream));
  if (profiler_range) CHECK(cudaProfilerStart());
  for (int i = 0; i < launches; ++i) {
    if (graph) {
      CHECK(cudaGraphLaunch(replay, stream));
    } else {
      launch();
    }
  }
  CHECK(cudaStreamSynchronize(stream));
  if (profiler_range) CHECK(cudaProfilerStop());
  float first[2] = {}, last[2] = {};
  for (int which = 0; which < 2; ++which) {
    const float* from = which ? target : source;
    CHECK(cudaMemcpy(&first[which], from, sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(&last[which], from + kLength - 1, sizeof(float), cudaMemcpyDeviceToHost));
  }
  return first[0] == 0.0f || first[1] != 2.0f * first[0] || last[1] != 2.0f * last[0];
}
