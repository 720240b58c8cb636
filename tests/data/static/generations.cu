// What each generation of chips has of its own, for tests that count it. Nothing here is run.
#include <cstdint>

#if defined(__CUDA_ARCH_SPECIFIC__) || defined(__CUDA_ARCH_FAMILY_SPECIFIC__)
#define SUFFIX 1
#else
#define SUFFIX 0
#endif
// Host code declares all kernels.
#ifndef __CUDA_ARCH__
#define CLUSTERS 1
#define HOPPER 1
#define TENSOR_MEMORY 1
#else
#define CLUSTERS (__CUDA_ARCH__ >= 900)
#define HOPPER (__CUDA_ARCH__ == 900 && SUFFIX)
#define TENSOR_MEMORY (__CUDA_ARCH__ >= 1000 && __CUDA_ARCH__ < 1200 && SUFFIX)
#endif

#define ROWS "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
#define MMA(shape, types)                                                                                              \
  asm volatile("mma.sync.aligned." shape ".row.col." types " {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%4,%4}, {%0,%1,%2,%3};"    \
               : ROWS                                                                                                  \
               : "r"(a))

// The product of a warp that every chip from Turing on has.
__device__ void product(float* d, uint32_t a) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%4}, {%4}, {%0,%1,%2,%3};"
               : ROWS
               : "r"(a));
}

// Products of a warp, of every source type that the chip has an instruction for.
extern "C" __global__ void products(float* d, uint32_t a) {
  product(d, a);
#if __CUDA_ARCH__ >= 800
  MMA("m16n8k16", "f32.bf16.bf16.f32");
  MMA("m16n8k8", "f32.tf32.tf32.f32");
#endif
#if __CUDA_ARCH__ == 890 || __CUDA_ARCH__ >= 1200
  MMA("m16n8k32", "f32.e4m3.e5m2.f32");
#endif
}

// A copy that goes on beside the thread: by the load unit, and by the tensor memory accelerator.
extern "C" __global__ void copies(const float4* from, float4* to) {
  __shared__ alignas(16) float4 staged[32];
#if __CUDA_ARCH__ >= 800
  const uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(&staged[threadIdx.x]));
#endif
#if __CUDA_ARCH__ >= 900
  __shared__ uint64_t arrived;
  const uint32_t bar = static_cast<uint32_t>(__cvta_generic_to_shared(&arrived));
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 16, [%2];" ::"r"(at),
               "l"(from), "r"(bar)
               : "memory");
#elif __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\ncp.async.wait_all;" ::"r"(at), "l"(from + threadIdx.x)
               : "memory");
#else
  staged[threadIdx.x] = from[threadIdx.x];
#endif
  __syncthreads();
  to[threadIdx.x] = staged[31 - threadIdx.x];
}

// More values than registers. They lie in shared memory, as far as there is room.
extern "C" __global__ void __launch_bounds__(128, 8) spills(float* x, int n) {
  asm volatile(".pragma \"enable_smem_spilling\";");
  __shared__ float own[256];
  own[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  float a[40];
  for (int i = 0; i < 40; i++) a[i] = x[i * n + threadIdx.x] + own[n];
  for (int j = 0; j < n; j++)
#pragma unroll
    for (int i = 0; i < 40; i++) a[i] = a[i] * a[(i * 7 + 3) % 40] + 1;
  for (int i = 0; i < 40; i++) x[i * n + threadIdx.x] = a[i];
}

#if CLUSTERS
extern "C" __global__ void __cluster_dims__(4, 2, 1) cluster(float* x) {
  asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
  x[blockIdx.x] = 1;
}
#endif

#if HOPPER || TENSOR_MEMORY
extern "C" __global__ void __launch_bounds__(256, 1) roles(float* x) {
  if (threadIdx.x < 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    x[0] = 1;
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    x[1] = 2;
  }
}
#endif

// Products of a warp group, or with results in tensor memory; with `OF_WARPS` those of a warp instead.
#if HOPPER
extern "C" __global__ void __launch_bounds__(128) warp_group(float* x, uint64_t a, uint64_t b) {
  float d[4] = {x[0], x[1], x[2], x[3]};
#ifdef OF_WARPS
  product(d, a);
#else
  asm volatile(
      "wgmma.fence.sync.aligned;\n"
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0,%1,%2,%3}, %4, %5, 1, 1, 1, 0, 0;\n"
      "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;"
      : ROWS
      : "l"(a), "l"(b));
#endif
  for (int i = 0; i < 4; i++) x[i] = d[i];
}
#endif

#if TENSOR_MEMORY
#define TCGEN05(kind, scales) \
  asm volatile("tcgen05.mma.cta_group::1.kind::" kind " [%0], %1, %2, %3" scales ", 1;" ::"r"(at), "l"(a), "l"(b), "r"(form))

extern "C" __global__ void __launch_bounds__(128) tensor_memory(float* x, uint64_t a, uint64_t b, uint32_t form) {
  __shared__ uint32_t base;
  const uint32_t place = static_cast<uint32_t>(__cvta_generic_to_shared(&base));
  if (threadIdx.x < 32) asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;" ::"r"(place));
  __syncthreads();
  const uint32_t at = base;
  float d[4] = {x[0], x[1], x[2], x[3]};
#ifdef OF_WARPS
  product(d, a);
#else
  if (threadIdx.x == 0) {
    TCGEN05("f16", "");
    TCGEN05("tf32", "");
    TCGEN05("f8f6f4", "");
    TCGEN05("mxf4.block_scale", ", [%0], [%0]");
  }
#endif
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];\ntcgen05.wait::ld.sync.aligned;"
               : "=f"(d[1])
               : "r"(at));
  x[threadIdx.x] = d[0] + d[1];
}
#endif

int main() { return 0; }
