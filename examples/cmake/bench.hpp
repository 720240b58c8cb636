// What both benchmarks share: options, values of the inputs, and the result that the gate reads.
#pragma once
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include <cuda_runtime.h>

inline void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
        std::exit(2);
    }
}

// The number after `--NAME` on the command line.
inline long option(int count, char **words, const char *name, long otherwise) {
    for (int i = 1; i + 1 < count; ++i)
        if (std::strcmp(words[i], name) == 0)
            return std::atol(words[i + 1]);
    return otherwise;
}

// Values that differ in every run: a program cannot have prepared their results.
inline std::vector<float> values(std::size_t size) {
    const char *seed = std::getenv("SPARSEK_GATE_SEED");
    std::mt19937 random(seed ? static_cast<unsigned>(std::strtoul(seed, nullptr, 10)) : 0);
    std::vector<float> made(size);
    for (float &value : made)
        value = static_cast<float>(random() % 2048) / 1024 - 1;
    return made;
}

template <typename T>
T *on_device(const std::vector<T> &host) {
    T *device;
    check(cudaMalloc(&device, host.size() * sizeof(T)));
    check(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
    return device;
}

// A buffer of NaN: a launch that writes nothing is seen.
inline float *unwritten(std::size_t size) {
    return on_device(std::vector<float>(size, NAN));
}

// Compares what the launches left with what is right, tells the gate, and is the exit status.
template <typename Expected>
int judged(const float *device, std::size_t size, Expected expected, double tolerance) {
    std::vector<float> host(size);
    check(cudaMemcpy(host.data(), device, size * sizeof(float), cudaMemcpyDeviceToHost));
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < size; ++i)
        wrong += !(std::fabs(host[i] - expected(i)) <= tolerance);
    if (const char *path = std::getenv("SPARSEK_GATE_RESULT"))
        if (std::FILE *file = std::fopen(path, "w")) {
            std::fprintf(file, "{\"correct\": %s, \"wrong\": %zu, \"checked\": %zu}\n",
                         wrong ? "false" : "true", wrong, size);
            std::fclose(file);
        }
    std::printf("%zu of %zu values are wrong\n", wrong, size);
    return wrong != 0;
}
