// A benchmark as many projects have one: versions of a kernel by number, a comparison with the CPU
// that takes long, and then a loop that is timed.
//
//     softmax VERSION [--rows N] [--no-compare] [--launches N]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

constexpr int COLUMNS = 4096;
constexpr int THREADS = 256;

// Each thread reads its part of the row three times.
__global__ void softmax_naive(const float *in, float *out) {
    __shared__ float shared[THREADS];
    const float *row = in + size_t{blockIdx.x} * COLUMNS;
    const auto reduced = [&](float own, auto combine) {
        shared[threadIdx.x] = own;
        __syncthreads();
        for (int half = THREADS / 2; half > 0; half /= 2) {
            if (threadIdx.x < half)
                shared[threadIdx.x] = combine(shared[threadIdx.x], shared[threadIdx.x + half]);
            __syncthreads();
        }
        const float all = shared[0];
        __syncthreads();
        return all;
    };
    float most = -INFINITY, sum = 0;
    for (int i = threadIdx.x; i < COLUMNS; i += THREADS)
        most = fmaxf(most, row[i]);
    most = reduced(most, [](float a, float b) { return fmaxf(a, b); });
    for (int i = threadIdx.x; i < COLUMNS; i += THREADS)
        sum += expf(row[i] - most);
    sum = reduced(sum, [](float a, float b) { return a + b; });
    for (int i = threadIdx.x; i < COLUMNS; i += THREADS)
        out[size_t{blockIdx.x} * COLUMNS + i] = expf(row[i] - most) / sum;
}

// Each thread keeps its part of the row in registers, and warps exchange by shuffles.
__global__ void __launch_bounds__(THREADS) softmax_registers(const float *in, float *out) {
    constexpr int EACH = COLUMNS / THREADS / 4;
    __shared__ float shared[2][THREADS / 32];
    const float4 *row = reinterpret_cast<const float4 *>(in + size_t{blockIdx.x} * COLUMNS);
    float4 part[EACH];
    float most = -INFINITY, sum = 0;
#pragma unroll
    for (int i = 0; i < EACH; ++i) {
        part[i] = row[i * THREADS + threadIdx.x];
        most = fmaxf(fmaxf(fmaxf(part[i].x, part[i].y), fmaxf(part[i].z, part[i].w)), most);
    }
    for (int lanes = 16; lanes > 0; lanes /= 2)
        most = fmaxf(most, __shfl_xor_sync(~0u, most, lanes));
    if (threadIdx.x % 32 == 0)
        shared[0][threadIdx.x / 32] = most;
    __syncthreads();
    for (int warp = 0; warp < THREADS / 32; ++warp)
        most = fmaxf(most, shared[0][warp]);
#pragma unroll
    for (int i = 0; i < EACH; ++i) {
        part[i].x = __expf(part[i].x - most), part[i].y = __expf(part[i].y - most);
        part[i].z = __expf(part[i].z - most), part[i].w = __expf(part[i].w - most);
        sum += part[i].x + part[i].y + part[i].z + part[i].w;
    }
    for (int lanes = 16; lanes > 0; lanes /= 2)
        sum += __shfl_xor_sync(~0u, sum, lanes);
    if (threadIdx.x % 32 == 0)
        shared[1][threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0;
    for (int warp = 0; warp < THREADS / 32; ++warp)
        sum += shared[1][warp];
    float4 *target = reinterpret_cast<float4 *>(out + size_t{blockIdx.x} * COLUMNS);
    const float scale = 1 / sum;
#pragma unroll
    for (int i = 0; i < EACH; ++i)
        target[i * THREADS + threadIdx.x] =
            make_float4(part[i].x * scale, part[i].y * scale, part[i].z * scale, part[i].w * scale);
}

void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
        std::exit(2);
    }
}

long option(int count, char **words, const char *name, long otherwise) {
    for (int i = 1; i + 1 < count; ++i)
        if (std::strcmp(words[i], name) == 0)
            return std::atol(words[i + 1]);
    return otherwise;
}

// Of the rows that are compared, how many values are wrong.
size_t wrong_values(const std::vector<float> &in, const std::vector<float> &out, size_t rows) {
    size_t wrong = 0;
    for (size_t row = 0; row < rows; ++row) {
        const float *x = &in[row * COLUMNS];
        double most = *std::max_element(x, x + COLUMNS), sum = 0;
        for (int i = 0; i < COLUMNS; ++i)
            sum += std::exp(x[i] - most);
        for (int i = 0; i < COLUMNS; ++i) {
            const double expected = std::exp(x[i] - most) / sum;
            wrong += !(std::fabs(out[row * COLUMNS + i] - expected) <= 1e-4 * expected + 1e-7);
        }
    }
    return wrong;
}

int main(int count, char **words) {
    const int version = count > 1 ? std::atoi(words[1]) : 0;
    if (version != 1 && version != 2) {
        std::fprintf(stderr, "usage: softmax 1|2 [--rows N] [--no-compare] [--launches N]\n");
        return 2;
    }
    const size_t rows = option(count, words, "--rows", 8192);
    const bool compare = !std::any_of(words, words + count, [](char *word) {
        return std::strcmp(word, "--no-compare") == 0;
    });
    const char *seed = std::getenv("SPARSEK_GATE_SEED");
    std::mt19937 random(seed ? static_cast<unsigned>(std::strtoul(seed, nullptr, 10)) : 0);
    std::vector<float> in(rows * COLUMNS), out(in.size(), NAN);
    for (float &value : in)
        value = static_cast<float>(random() % 4096) / 512;
    float *device_in, *device_out;
    check(cudaMalloc(&device_in, in.size() * sizeof(float)));
    check(cudaMalloc(&device_out, out.size() * sizeof(float)));
    check(cudaMemcpy(device_in, in.data(), in.size() * sizeof(float), cudaMemcpyHostToDevice));
    check(cudaMemcpy(device_out, out.data(), out.size() * sizeof(float), cudaMemcpyHostToDevice));

    const auto kernel = version == 1 ? softmax_naive : softmax_registers;
    const long launches = option(count, words, "--launches", 100);
    const auto begin = std::chrono::steady_clock::now();
    for (long i = 0; i < launches; ++i)
        kernel<<<static_cast<unsigned>(rows), THREADS>>>(device_in, device_out);
    check(cudaDeviceSynchronize());
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    std::printf("version %d: %.1f us a launch\n", version, took.count() / double(launches));

    check(cudaMemcpy(out.data(), device_out, out.size() * sizeof(float), cudaMemcpyDeviceToHost));
    // All rows take seconds. A few are always compared: what is timed must be right, too.
    const size_t compared = compare ? rows : std::min<size_t>(rows, 16);
    const size_t wrong = wrong_values(in, out, compared);
    if (const char *path = std::getenv("SPARSEK_GATE_RESULT"))
        if (std::FILE *file = std::fopen(path, "w")) {
            std::fprintf(file, "{\"correct\": %s, \"wrong\": %zu, \"checked\": %zu}\n",
                         wrong ? "false" : "true", wrong, compared * COLUMNS);
            std::fclose(file);
        }
    std::printf("%zu of %zu values are wrong\n", wrong, compared * COLUMNS);
    return wrong != 0;
}
