// Kernels whose use of registers a constant steers.
#ifndef LIVE
#define LIVE 20
#endif

// Holds LIVE values in registers across a barrier.
extern "C" __global__ void held(const float* from, float* to) {
  float values[LIVE];
#pragma unroll
  for (int i = 0; i < LIVE; ++i) values[i] = from[threadIdx.x + 32 * i];
  __syncthreads();
  float sum = 0.0F;
#pragma unroll
  for (int i = 0; i < LIVE; ++i) sum = sum * values[i] + 1.0F;
  to[threadIdx.x] = sum;
}

// Wants 32 registers, and spills where it gets fewer.
extern "C" __global__ void reversed(float* values) {
  float held[20];
#pragma unroll
  for (int i = 0; i < 20; ++i) held[i] = values[threadIdx.x + 32 * i];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 20; ++i) values[threadIdx.x + 32 * (19 - i)] = held[i];
}

int main() { return 0; }
