// One small kernel, for tests that look into what the compiler makes.
__global__ void kernel(float* values) {
  __shared__ float staged[256];
  staged[threadIdx.x] = values[threadIdx.x];
  __syncthreads();
  values[threadIdx.x] = staged[255 - threadIdx.x];
}

int main() { return 0; }
