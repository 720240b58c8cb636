// What the variants ask for that are built for one number of keys, and describe all of Q, K and V
// by one tensor map.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "../common/options.cuh"
#include "../common/tma.cuh"
#include "problem.cuh"

namespace sparsek {

// Ends the process if a head has another number of keys than the kernel was built for.
inline void require_keys(const AttentionShape& shape, int keys) {
  if (shape.sequence == keys) return;
  usage_error("--sequence " + std::to_string(shape.sequence) + " is not " + std::to_string(keys) +
              ", the keys that this kernel was built for");
}

// All of Q, K and V in boxes of so many rows. Ends the process where one does not follow the other,
// or a head has another number of keys.
inline CUtensorMap one_buffer_map(const AttentionOperands& p, int keys, int box_rows) {
  const std::size_t elements = static_cast<std::size_t>(p.heads) * p.sequence * kFeatures;
  if (p.sequence != keys || p.k != p.q + elements || p.v != p.k + elements) {
    usage_error("this kernel needs Q, K and V one after another in one buffer, and " +
                std::to_string(keys) + " keys in a head");
  }
  const std::uint64_t rows = static_cast<std::uint64_t>(3) * p.heads * p.sequence;
  return matrix_map(p.q, rows, kFeatures, box_rows, kFeatures, CU_TENSOR_MAP_SWIZZLE_128B);
}

}  // namespace sparsek
