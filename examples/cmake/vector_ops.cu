#include "vector_ops.hpp"

namespace {

constexpr int THREADS = 256;

__global__ void axpy_kernel(float a, const float4 *x, const float4 *y, float4 *z, std::size_t size) {
    const std::size_t i = std::size_t{blockIdx.x} * THREADS + threadIdx.x;
    if (i >= size)
        return;
    const float4 p = x[i], q = y[i];
    z[i] = make_float4(a * p.x + q.x, a * p.y + q.y, a * p.z + q.z, a * p.w + q.w);
}

// One block a row.
__global__ void row_norm_kernel(const float *x, float *norm, int columns) {
    __shared__ float sums[THREADS / 32];
    const float *row = x + std::size_t{blockIdx.x} * columns;
    float sum = 0;
    for (int i = threadIdx.x; i < columns; i += THREADS)
        sum += row[i] * row[i];
    for (int lanes = 16; lanes > 0; lanes /= 2)
        sum += __shfl_down_sync(~0u, sum, lanes);
    if (threadIdx.x % 32 == 0)
        sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int warp = 1; warp < THREADS / 32; ++warp)
            sum += sums[warp];
        norm[blockIdx.x] = sqrtf(sum);
    }
}

} // namespace

void axpy(float a, const float *x, const float *y, float *z, std::size_t size) {
    const std::size_t quads = size / 4;
    const unsigned blocks = static_cast<unsigned>((quads + THREADS - 1) / THREADS);
    axpy_kernel<<<blocks, THREADS>>>(a, reinterpret_cast<const float4 *>(x),
                                     reinterpret_cast<const float4 *>(y),
                                     reinterpret_cast<float4 *>(z), quads);
}

void row_norm(const float *x, float *norm, int rows, int columns) {
    row_norm_kernel<<<rows, THREADS>>>(x, norm, columns);
}
