// Two kernels whose wgmma the compiler serializes, and one whose setmaxnreg it ignores.
#include <cstdint>

__device__ void wgmma_m64n8k16(float (&d)[4], std::uint64_t a, std::uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "l"(a), "l"(b));
}

extern "C" __global__ void serialized(float* out, std::uint64_t a, std::uint64_t b) {
  float d[4] = {};
  asm volatile("wgmma.fence.sync.aligned;");
  wgmma_m64n8k16(d, a, b);
  d[0] += 1.0F;  // touched while the pipeline may still write it
  wgmma_m64n8k16(d, a + 2, b);
  asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;");
  for (int i = 0; i < 4; ++i) out[4 * threadIdx.x + i] = d[i];
}

extern "C" __global__ void pipelined(float* out, std::uint64_t a, std::uint64_t b) {
  float d[4] = {};
  asm volatile("wgmma.fence.sync.aligned;");
  wgmma_m64n8k16(d, a, b);
  wgmma_m64n8k16(d, a + 2, b);
  asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;");
  for (int i = 0; i < 4; ++i) out[4 * threadIdx.x + i] = d[i];
}

extern "C" __global__ void ignored(float* out) {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
  out[threadIdx.x] = 1.0F;
}

int main() { return 0; }
