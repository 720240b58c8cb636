// Launches of every kind that ncu reports in a form of its own, for ci/record-forms.sh:
//
//     forms kernels|graph|ranges|sampling|nvtx|contexts|devices|cooperative
//
// All kernels are small: a report is about its form, not about speed.
#include <cooperative_groups.h>
#include <cuda.h>
#include <cuda_runtime.h>
#include <mma.h>
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#else  // Some installations of the compiler lack it.
#define nvtxRangePushA(name)
#define nvtxRangePop()
#endif

#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" cudaError_t cudaProfilerStart();
extern "C" cudaError_t cudaProfilerStop();

#define CHECK(call)                                                      \
  do {                                                                   \
    if (int status = static_cast<int>(call)) {                           \
      std::fprintf(stderr, "%s: error %d\n", #call, status);             \
      std::exit(1);                                                      \
    }                                                                    \
  } while (0)

constexpr int COUNT = 1 << 20;

namespace forms {
template <typename T>
struct Pair {
  T first, second;
};

// A template with a value, a type of a namespace and a pointer in its name.
template <typename T, int TIMES, bool STORE>
__global__ void scale(T *values, Pair<float> by, int count) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= count) return;
  T value = values[at];
  for (int time = 0; time < TIMES; ++time) value = value * static_cast<T>(by.first) + static_cast<T>(by.second);
  if (STORE || value == static_cast<T>(-1)) values[at] = value;
}
}  // namespace forms

namespace {
// In a namespace without a name.
__global__ void transpose(const float *from, float *to, int side) {
  __shared__ float tile[32][32];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  tile[threadIdx.y][threadIdx.x] = from[y * side + x];
  __syncthreads();
  // Without padding: every access conflicts.
  to[(blockIdx.x * 32 + threadIdx.y) * side + blockIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
}  // namespace

template <typename Body>
__global__ void each(float *values, int count, Body body) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < count) values[at] = body(values[at]);
}

extern "C" __global__ void tensor(const half *a, const half *b, float *c) {
  using namespace nvcuda::wmma;
  fragment<matrix_a, 16, 16, 16, half, row_major> left;
  fragment<matrix_b, 16, 16, 16, half, col_major> right;
  fragment<accumulator, 16, 16, 16, float> sum;
  fill_fragment(sum, 0.0f);
  for (int k = 0; k < 64; ++k) {
    load_matrix_sync(left, a + k * 256, 16);
    load_matrix_sync(right, b + k * 256, 16);
    mma_sync(sum, left, right, sum);
  }
  store_matrix_sync(c + blockIdx.x * 256, sum, 16, mem_row_major);
}

__global__ void reduce(const float *values, float *sum, int count) {
  float mine = 0;
  for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < count; at += gridDim.x * blockDim.x) mine += values[at];
  for (int lane = 16; lane; lane /= 2) mine += __shfl_down_sync(~0u, mine, lane);
  if (threadIdx.x % 32 == 0) atomicAdd(sum, mine);
}

__global__ void together(float *values) {
  auto grid = cooperative_groups::this_grid();
  values[grid.thread_rank()] += 1;
  grid.sync();
  values[grid.thread_rank()] += values[(grid.thread_rank() + 1) % grid.size()];
}

__global__ void clustered(float *values) {
#if __CUDA_ARCH__ >= 900
  auto cluster = cooperative_groups::this_cluster();
  __shared__ float mine;
  if (threadIdx.x == 0) mine = values[blockIdx.x];
  cluster.sync();
  values[blockIdx.x * blockDim.x + threadIdx.x] += *cluster.map_shared_rank(&mine, cluster.block_rank() ^ 1);
  cluster.sync();
#endif
}

struct Memory {
  float *values, *other;
  half *halves;
  Memory() {
    CHECK(cudaMalloc(&values, COUNT * sizeof(float)));
    CHECK(cudaMalloc(&other, COUNT * sizeof(float)));
    CHECK(cudaMalloc(&halves, COUNT * sizeof(half)));
    CHECK(cudaMemset(values, 0, COUNT * sizeof(float)));
    CHECK(cudaMemset(halves, 0, COUNT * sizeof(half)));
  }
};

static void scaled(float *values, cudaStream_t stream = 0) {
  forms::scale<float, 8, true><<<COUNT / 256, 256, 0, stream>>>(values, {1.5f, 0.5f}, COUNT);
}

static void swapped(const Memory &memory, cudaStream_t stream = 0) {
  transpose<<<dim3(32, 32), dim3(32, 32), 0, stream>>>(memory.values, memory.other, 1024);
}

static void kernels() {
  Memory memory;
  scaled(memory.values);
  swapped(memory);
  forms::scale<unsigned long long, 2, false><<<64, dim3(8, 4, 2)>>>(
      reinterpret_cast<unsigned long long *>(memory.other), {2.0f, 1.0f}, COUNT / 2);
  float by = 3;
  each<<<COUNT / 128, 128>>>(memory.values, COUNT, [by] __device__(float value) { return value * by + sqrtf(value); });
  tensor<<<128, 32>>>(memory.halves, memory.halves, memory.values);
  reduce<<<132, 512>>>(memory.values, memory.other, COUNT);
  int major = 0;
  CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
  if (major < 9) return;
  cudaLaunchConfig_t config = {};
  config.gridDim = 64;
  config.blockDim = 128;
  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {2, 1, 1};
  config.attrs = &cluster;
  config.numAttrs = 1;
  CHECK(cudaLaunchKernelEx(&config, clustered, memory.values));
}

static void graph() {
  Memory memory;
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t ready;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  scaled(memory.values, stream);
  swapped(memory, stream);
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&ready, graph, 0));
  for (int turn = 0; turn < 2; ++turn) CHECK(cudaGraphLaunch(ready, stream));
  reduce<<<132, 512, 0, stream>>>(memory.values, memory.other, COUNT);
}

static void ranges() {
  Memory memory;
  scaled(memory.values);
  for (int range = 0; range < 2; ++range) {
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaProfilerStart());
    scaled(memory.values);
    swapped(memory);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaProfilerStop());
  }
}

static void sampling() {
  Memory memory;
  // Long enough for some samples.
  forms::scale<float, 20000, true><<<COUNT / 256, 256>>>(memory.values, {1.0001f, 0.5f}, COUNT);
}

static void nvtx() {
  Memory memory;
  scaled(memory.values);
  nvtxRangePushA("outer");
  for (int step = 0; step < 2; ++step) {
    nvtxRangePushA("inner \"quoted\", with a comma");
    swapped(memory);
    nvtxRangePop();
  }
  nvtxRangePop();
}

// Two contexts on one GPU, and two streams in the second one.
static void contexts() {
  {
    Memory memory;
    scaled(memory.values);
    CHECK(cudaDeviceSynchronize());
  }
  CUdevice device;
  CUcontext context;
  CHECK(cuDeviceGet(&device, 0));
#if CUDART_VERSION >= 13000
  CHECK(cuCtxCreate(&context, nullptr, 0, device));
#else
  CHECK(cuCtxCreate(&context, 0, device));
#endif
  Memory memory;
  cudaStream_t streams[2];
  for (cudaStream_t &stream : streams) {
    CHECK(cudaStreamCreate(&stream));
    scaled(memory.values, stream);
    swapped(memory, stream);
  }
}

static void devices() {
  int count = 0;
  CHECK(cudaGetDeviceCount(&count));
  for (int device = 0; device < count; ++device) {
    CHECK(cudaSetDevice(device));
    Memory memory;
    scaled(memory.values);
    swapped(memory);
    CHECK(cudaDeviceSynchronize());
  }
}

static void cooperative() {
  Memory memory;
  void *arguments[] = {&memory.values};
  CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void *>(together), dim3(64), dim3(128), arguments, 0, nullptr));
}

int main(int count, char **words) {
  struct {
    const char *name;
    void (*run)();
  } forms[] = {{"kernels", kernels}, {"graph", graph},       {"ranges", ranges},   {"sampling", sampling},
               {"nvtx", nvtx},       {"contexts", contexts}, {"devices", devices}, {"cooperative", cooperative}};
  for (auto &form : forms) {
    if (count != 2 || std::strcmp(words[1], form.name) != 0) continue;
    form.run();
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    return 0;
  }
  std::fprintf(stderr, "usage: forms kernels|graph|ranges|sampling|nvtx|contexts|devices|cooperative\n");
  return 2;
}
