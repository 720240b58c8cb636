// How many thread blocks a kernel wants whose thread blocks stay and take tile after tile.
#pragma once

#include <cuda_runtime.h>

#include "cuda_check.cuh"

namespace sparsek {

inline int multiprocessors() {
  int device = 0, count = 0;
  SPARSEK_CUDA_CHECK(cudaGetDevice(&device));
  SPARSEK_CUDA_CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
  return count;
}

// With `resident` thread blocks at a time the tiles take so many rounds; this is the least number
// that takes no more. Those left out would have idled in the last round.
inline int persistent_grid(int tiles, int resident) {
  const int rounds = (tiles + resident - 1) / resident;
  return (tiles + rounds - 1) / rounds;
}

}  // namespace sparsek
