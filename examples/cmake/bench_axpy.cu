#include "bench.hpp"
#include "vector_ops.hpp"

int main(int count, char **words) {
    const std::size_t size = option(count, words, "--size", 1 << 24);
    const std::vector<float> x = values(size);
    const std::vector<float> y(x.rbegin(), x.rend());
    float *z = unwritten(size);
    const float *device_x = on_device(x), *device_y = on_device(y);
    for (long i = option(count, words, "--launches", 1); i > 0; --i)
        axpy(0.5f, device_x, device_y, z, size);
    check(cudaDeviceSynchronize());
    return judged(z, size, [&](std::size_t i) { return 0.5 * x[i] + y[i]; }, 1e-5);
}
