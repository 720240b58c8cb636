// Matrices from shared memory into the registers of a warp (PTX ldmatrix).
#pragma once

#include <cstdint>

#include "mbarrier.cuh"

namespace sparsek {

// Four matrices of 8x8 fp16. Lanes 0 to 7 give the rows of the first, 16 bytes each, lanes 8 to 15
// those of the second, and so on; lane t receives of each the pair t % 4 of row t / 4.
__device__ __forceinline__ void load_matrices(std::uint32_t (&matrices)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
               : "r"(shared_address(row))
               : "memory");
}

}  // namespace sparsek
