#include "bench.hpp"
#include "vector_ops.hpp"

int main(int count, char **words) {
    const int rows = option(count, words, "--rows", 4096), columns = option(count, words, "--columns", 8192);
    const std::vector<float> x = values(std::size_t(rows) * columns);
    const float *device_x = on_device(x);
    float *norm = unwritten(rows);
    for (long i = option(count, words, "--launches", 1); i > 0; --i)
        row_norm(device_x, norm, rows, columns);
    check(cudaDeviceSynchronize());
    const auto expected = [&](std::size_t row) {
        double sum = 0;
        for (int i = 0; i < columns; ++i)
            sum += double(x[row * columns + i]) * x[row * columns + i];
        return std::sqrt(sum);
    };
    return judged(norm, rows, expected, 1e-3);
}
