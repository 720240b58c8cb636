// A warp's part of C from the registers of mma.sync to memory.
#pragma once

#include <cstddef>

#include "../common/quad.cuh"

namespace sparsek {

// Stores the sums of Rows x Columns products of 16 x 8 (mma.cuh: d). Lane pairs exchange, so that
// each lane has 16 bytes of one of two neighbouring groups of 8 columns, and 4 lanes together 64
// bytes of a row. C is not read again by the kernel: streaming stores leave the L2 to B.
// `lane_c` is where a lane begins: row lane / 4 of the warp's part, column
// lane % 2 * 8 + lane % 4 / 2 * 4. `odd_lane`: whether lane is odd.
template <int Rows, int Columns>
__device__ __forceinline__ void store_tile(const float (&sums)[Rows][Columns][4], float* lane_c,
                                           int n, bool odd_lane) {
#pragma unroll
  for (int i = 0; i < Rows; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float* const row_c = lane_c + static_cast<std::size_t>(i * 16 + half * 8) * n;
#pragma unroll
      for (int j = 0; j < Columns; j += 2) {
        const float* const left = sums[i][j] + half * 2;
        const float* const right = sums[i][j + 1] + half * 2;
        __stcs(reinterpret_cast<float4*>(row_c + j * 8), pair_exchange(left, right, odd_lane));
      }
    }
  }
}

}  // namespace sparsek
