#pragma once
#include <cstddef>

// z[i] = a * x[i] + y[i]. The pointers are aligned to 16 bytes, and `size` is a multiple of 4.
void axpy(float a, const float *x, const float *y, float *z, std::size_t size);

// norm[r] = the Euclidean norm of row r of `x`, which has `rows` rows of `columns` values.
void row_norm(const float *x, float *norm, int rows, int columns);
