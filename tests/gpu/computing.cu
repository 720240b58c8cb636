// Launches a kernel, and computes on the CPU for half a second three times: while it captures a stream,
// after that, and while a kernel still runs. With --slow the kernel takes a tenth longer after the first.

#include <cstdio>
#include <cstring>
#include <unistd.h>

#include <cuda_runtime.h>

__global__ void spin(long long cycles) {
  const long long begin = clock64();
  while (clock64() - begin < cycles) {
  }
}

int main(int count, char** arguments) {
  const bool slow = count > 1 && std::strcmp(arguments[1], "--slow") == 0;
  const long long cycles = 100000;
  const long long later = slow ? 110000 : cycles;
  const auto computes = [] { usleep(500000); };
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  for (int at = 0; at < 20; ++at) spin<<<1, 32, 0, stream>>>(cycles);
  cudaStreamSynchronize(stream);
  cudaGraph_t graph;
  cudaGraphExec_t whole;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  for (int at = 0; at < 20; ++at) spin<<<1, 32, 0, stream>>>(later);
  computes();
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&whole, graph, 0);
  computes();
  for (int at = 0; at < 5; ++at) cudaGraphLaunch(whole, stream);
  spin<<<2, 32, 0, stream>>>(100000000);
  computes();
  const cudaError_t error = cudaDeviceSynchronize();
  std::printf("%s\n", cudaGetErrorString(error));
  return error == cudaSuccess ? 0 : 1;
}
