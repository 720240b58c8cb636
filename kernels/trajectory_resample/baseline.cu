// Rung 1, trajectory_resample_baseline: the definition, word for word. Each thread computes one
// element of the output, and searches for it. Its time: docs/kernels.md.
//
// What it costs: the threads of an output row all make the same search, some log2(S) loads that
// wait for each other, and then move 2 bytes with each access. Neighbouring lanes hold neighbouring
// features, so that the accesses of a warp are at least contiguous.
//
// Thread block: 256 threads, no shared memory, no barrier.
// Grid: one thread an element, in the order of the output.
#include "../common/harness.cuh"
#include "problem.cuh"

namespace {

using sparsek::Operands;

constexpr int kThreads = 256;

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads)
    trajectory_resample_baseline(const __nv_bfloat16* __restrict__ source,
                                 const float* __restrict__ source_times,
                                 const float* __restrict__ target_times,
                                 __nv_bfloat16* __restrict__ out, int batch, int steps, int targets,
                                 int features) {
  const std::uint64_t elements = static_cast<std::uint64_t>(batch) * targets * features;
  const std::uint64_t element = static_cast<std::uint64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (element >= elements) return;
  const std::uint64_t target = element / features;
  const std::uint64_t first_sample = target / targets * steps;
  const float* const times = source_times + first_sample;
  const __nv_bfloat16* const column = source + first_sample * features + element % features;
  const float x = target_times[target];

  // The number of samples that are not later than the target lies between low and high.
  int low = 0, high = steps;
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (times[middle] <= x) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }

  // Both ends are held.
  const int row = max(low - 1, 0);
  const int next_row = min(low, steps - 1);
  const float t0 = times[row], t1 = times[next_row];
  const float weight = row < next_row && low > 0 ? (x - t0) / (t1 - t0) : 0.0f;
  const float a = __bfloat162float(column[static_cast<std::size_t>(row) * features]);
  const float b = __bfloat162float(column[static_cast<std::size_t>(next_row) * features]);
  out[element] = __float2bfloat16_rn(fmaf(weight, b - a, a));
}

static void launch(const Operands& p) {
  const std::uint64_t elements = static_cast<std::uint64_t>(p.batch) * p.targets * p.features;
  const auto blocks = static_cast<unsigned>((elements + kThreads - 1) / kThreads);
  trajectory_resample_baseline<<<blocks, kThreads>>>(p.source, p.source_times, p.target_times,
                                                     p.out, p.batch, p.steps, p.targets,
                                                     p.features);
}

int main(int argc, char** argv) {
  return sparsek::run<sparsek::Problem>(
      argc, argv, {"trajectory_resample_baseline", nullptr, nullptr, launch});
}
