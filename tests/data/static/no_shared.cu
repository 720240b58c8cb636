// One small kernel that uses no shared memory.
__global__ void kernel(float* values) { values[threadIdx.x] *= 2; }

int main() { return 0; }
