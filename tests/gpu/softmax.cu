// The program of README's five lines: it launches its kernel 24 times, and checks the result.
#include <cmath>
#include <cstdio>
#include <vector>

__global__ void softmax(const float *in, float *out, int columns) {
  __shared__ float sums[256];
  const float *row = in + size_t(blockIdx.x) * columns;
  float sum = 0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += expf(row[i]);
  sums[threadIdx.x] = sum;
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  __syncthreads();
  for (int i = threadIdx.x; i < columns; i += blockDim.x)
    out[size_t(blockIdx.x) * columns + i] = expf(row[i]) / sums[0];
}

int main() {
  const int rows = 4096, columns = 4096;
  std::vector<float> in(size_t(rows) * columns), out(in.size());
  for (size_t i = 0; i < in.size(); i++) in[i] = float(i * 2654435761u % 1000) / 1000;
  float *from, *to;
  cudaMalloc(&from, in.size() * 4);
  cudaMalloc(&to, in.size() * 4);
  cudaMemcpy(from, in.data(), in.size() * 4, cudaMemcpyHostToDevice);
  for (int launch = 0; launch < 24; launch++) softmax<<<rows, 256>>>(from, to, columns);
  if (cudaMemcpy(out.data(), to, out.size() * 4, cudaMemcpyDeviceToHost) != cudaSuccess) return 1;
  for (int row = 0; row < rows; row += 97) {
    double sum = 0;
    for (int i = 0; i < columns; i++) sum += out[size_t(row) * columns + i];
    if (!(std::fabs(sum - 1) < 1e-3)) return printf("row %d sums to %f\n", row, sum), 1;
  }
}
