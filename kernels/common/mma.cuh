// Matrix products of one warp (PTX mma.sync) and the loads of their operands (PTX ldmatrix), one
// instruction a wrapper. Below, g is lane / 4 and q is lane % 4.
#pragma once

#include <cstdint>

namespace sparsek {

// Four 8x8 matrices of 16-bit elements from shared memory: lane l gives the address of row l % 8 of
// matrix l / 8, 16 bytes, and receives of each matrix the pair (row g, columns 2q and 2q + 1).
__device__ __forceinline__ void ldmatrix_x4(std::uint32_t (&d)[4], std::uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(row)
               : "memory");
}

// The same, transposed: of each matrix the pair (rows 2q and 2q + 1, column g).
__device__ __forceinline__ void ldmatrix_x4_trans(std::uint32_t (&d)[4], std::uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(row)
               : "memory");
}

// d += a * b: fp16 in, fp32 out; 16 x 8 x 16.
// a: a[0] the pair (row g, k 2q and 2q + 1), a[1] 8 rows below, a[2] and a[3] those 8 k further on.
// b: b0 the pair (k 2q and 2q + 1, column g), b1 8 k further on.
// d: d[0] and d[1] (row g, columns 2q and 2q + 1), d[2] and d[3] 8 rows below.
__device__ __forceinline__ void mma_m16n8k16(float (&d)[4], const std::uint32_t (&a)[4],
                                             std::uint32_t b0, std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// The same: bf16 in, fp32 out.
__device__ __forceinline__ void mma_m16n8k16_bf16(float (&d)[4], const std::uint32_t (&a)[4],
                                                  std::uint32_t b0, std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace sparsek
