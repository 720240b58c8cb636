// A ring of stages in shared memory that barriers hand from writers to readers and back.
#pragma once

#include <cstdint>

namespace sparsek {

// The stage that is next, and the parity of its barriers' phase.
template <int Stages>
struct Cursor {
  int stage = 0;
  std::uint32_t parity = 0;

  __device__ __forceinline__ void step() {
    if (++stage < Stages) return;
    stage = 0;
    parity ^= 1;
  }
};

}  // namespace sparsek
