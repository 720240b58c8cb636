// Rung 3, trajectory_resample_tma: the rows start before anybody knows which are wanted. A thread
// block asks for those rows among which its targets would lie if targets and samples covered the
// same time evenly, all of them with one bulk copy, and its warps search while the copy is under
// way. Search and rows then wait for the memory side by side, where the rung before has one after
// the other. Rows that the guess left out are loaded as in that rung: a wrong guess costs time,
// never the result. What it gained: docs/kernels.md.
//
// Where many targets share an interval, stores crowd out the loads of the thread blocks to come: a
// thread block prefetches the rows of one that starts much later.
//
// Without the prefetch it takes 2 % more time at 256,100,2048,256 (graphs of launches that take
// turns at several inputs; H200, 2026-11-22). A kernel that only stores that output takes 81 % of
// its time.
//
// What that teaches: a copy engine pays once a thread block shares what it brings and once it runs
// ahead of what is known. Slower than warp_optimized were, at 64,1000,512,512 (2026-11-22):
//   * a copy for each warp and interval, after the search: 4 %;
//   * thread blocks that stay, and ask for the rows of the next tile before they work at one: 10 %
//     and more;
//   * a prefetch of rows where few targets share an interval: 12 %.
// Output that leaves through shared memory by bulk copies took 5 % more time at 256,100,2048,256
// (tiles of 2 KB whose rows were not kept; 2026-11-21).
//
// Thread block: warps with tiles of one trajectory side by side; 8 with large tiles where many
//   targets share an interval, otherwise 4 with small ones. Registers: 64 a thread.
// Shared memory (dynamic): the rows of the window. There is none where samples are more than
//   kMostSamples times as many as targets: most of its rows would come in vain.
// Barriers: full, 1 arrival (thread 0) and the bytes of the window; all threads wait, once.
// Grid: x walks the tiles in the order of the output.
#include "../common/bulk.cuh"
#include "../common/dependent_launch.cuh"
#include "../common/harness.cuh"
#include "interpolation.cuh"
#include "problem.cuh"

namespace {

using sparsek::Barrier;
using sparsek::kAllLanes;
using sparsek::kVectorElements;
using sparsek::Operands;
using sparsek::Place;

constexpr int kMaxThreads = 256;
constexpr int kMinBlocks = 4;  // of so many threads, on a multiprocessor
constexpr int kMaxSharedBytes = 226 * 1024;
constexpr int kManyTargets = 4;     // for every sample, from which on tiles are large
constexpr int kMostSamples = 3;     // for every target, up to which there is a window
constexpr float kMargin = 0.75f;    // samples by which the guess may be off
constexpr int kBlocksAhead = 2112;  // four times as many as 132 multiprocessors hold
constexpr int kUnrolledMany = 4;

// How the work is cut.
struct Plan {
  bool many;  // targets for a sample
  int warps;  // of a thread block
  int tile;   // targets of a warp, at most as many as lanes
  int blocks_per_trajectory;
  int capacity;    // rows of a window, at most
  int first_step;  // of a search

  __host__ __device__ int block_targets() const { return warps * tile; }
};

// The rows that a thread block asks for.
struct Window {
  int trajectory;
  int first;  // of the trajectory's
  int rows;
};

// The window of thread block `block`.
__device__ __forceinline__ Window guess_window(const Operands& p, const Plan& plan, int block) {
  const int first = block % plan.blocks_per_trajectory * plan.block_targets();
  const int count = min(plan.block_targets(), p.targets - first);
  const float samples_per_target = static_cast<float>(p.steps) / static_cast<float>(p.targets);
  // Where the first and the last target would be among the samples.
  const float begin = (static_cast<float>(first) + 0.5f) * samples_per_target - 0.5f;
  const float end = begin + static_cast<float>(count - 1) * samples_per_target;
  const int first_row = max(min(static_cast<int>(floorf(begin - kMargin)), p.steps - 1), 0);
  const int last_row = min(static_cast<int>(floorf(end + kMargin)) + 1, p.steps - 1);
  return {block / plan.blocks_per_trajectory, first_row,
          min(max(last_row - first_row + 1, 1), plan.capacity)};
}

__device__ __forceinline__ const uint4* window_source(const Operands& p, const Window& window) {
  const std::size_t row = static_cast<std::size_t>(window.trajectory) * p.steps + window.first;
  return reinterpret_cast<const uint4*>(p.source + row * p.features);
}

__device__ __forceinline__ int window_bytes(const Operands& p, const Window& window) {
  return window.rows * p.features * static_cast<int>(sizeof(*p.source));
}

// Rows of the largest window of so many targets.
int most_rows(const Operands& p, int targets) {
  const double samples = static_cast<double>(targets - 1) * p.steps / p.targets + 2 * kMargin;
  return static_cast<int>(std::min<double>(p.steps, samples + 3));
}

Plan make_plan(const Operands& p) {
  const int row_bytes = p.features * static_cast<int>(sizeof(*p.source));
  Plan plan{};
  plan.many = p.targets / kManyTargets >= p.steps;
  plan.warps = plan.many ? 8 : 4;
  plan.tile = std::min(32, std::max(1, (plan.many ? 4096 : 1024) / row_bytes));
  plan.blocks_per_trajectory = (p.targets + plan.block_targets() - 1) / plan.block_targets();
  if (p.steps / kMostSamples <= p.targets) {
    plan.capacity = std::min(most_rows(p, plan.block_targets()), kMaxSharedBytes / row_bytes);
  }
  plan.first_step = sparsek::first_step(p.steps);
  return plan;
}

}  // namespace

// A tile of targets a warp.
extern "C" __global__ void __launch_bounds__(kMaxThreads, kMinBlocks)
    trajectory_resample_tma(Operands p, Plan plan) {
  extern __shared__ __align__(128) uint4 rows[];
  __shared__ Barrier full;
  sparsek::launch_dependents();
  if (threadIdx.x == 0) {
    sparsek::barrier_init(&full, 1);
    sparsek::barrier_init_fence();
  }

  const int block = static_cast<int>(blockIdx.x);
  const int trajectory = block / plan.blocks_per_trajectory;
  const int first = block % plan.blocks_per_trajectory * plan.block_targets() +
                    static_cast<int>(threadIdx.x) / 32 * plan.tile;
  const int count = min(plan.tile, p.targets - first);
  const sparsek::Times times = sparsek::tile_times(p, trajectory, first, count);
  if (count > 0) sparsek::prefetch_times(times, count, p.steps);
  __syncthreads();
  sparsek::wait_for_prerequisites();

  const Window window = guess_window(p, plan, block);
  if (threadIdx.x == 0) {
    const int bytes = window_bytes(p, window);
    sparsek::barrier_arrive_expect(&full, bytes);
    if (bytes > 0) sparsek::bulk_load(rows, window_source(p, window), bytes, &full);
    if (plan.many && block + kBlocksAhead < static_cast<int>(gridDim.x)) {
      const Window later = guess_window(p, plan, block + kBlocksAhead);
      const int later_bytes = window_bytes(p, later);
      if (later_bytes > 0) sparsek::prefetch_bytes(window_source(p, later), later_bytes);
    }
  }
  if (count <= 0) return;

  const Place place = sparsek::find_places(times, count, p.steps, plan.first_step);
  const Place in_window{place.row - window.first, place.weight};
  const int last_row = in_window.row + (place.weight > 0 ? 1 : 0);
  const bool guessed = in_window.row >= 0 && last_row < window.rows;
  const int vectors = p.features / kVectorElements;
  const auto* const samples = reinterpret_cast<const uint4*>(p.source) +
                              static_cast<std::size_t>(trajectory) * p.steps * vectors;
  auto* const results = reinterpret_cast<uint4*>(p.out) +
                        (static_cast<std::size_t>(trajectory) * p.targets + first) * vectors;
  sparsek::barrier_wait(&full, 0);
  if (!__all_sync(kAllLanes, guessed)) {
    sparsek::resample_held<1>(samples, results, vectors, count, place);
  } else if (plan.many) {
    sparsek::resample_held<kUnrolledMany>(rows, results, vectors, count, in_window);
  } else {
    sparsek::resample_held<1>(rows, results, vectors, count, in_window);
  }
}

static void prepare() {
  SPARSEK_CUDA_CHECK(cudaFuncSetAttribute(
      trajectory_resample_tma, cudaFuncAttributeMaxDynamicSharedMemorySize, kMaxSharedBytes));
}

static void launch(const Operands& p) {
  sparsek::require_aligned(p);
  const Plan plan = make_plan(p);
  const auto blocks =
      static_cast<unsigned>(static_cast<std::int64_t>(p.batch) * plan.blocks_per_trajectory);
  const std::size_t row_bytes = p.features * sizeof(*p.source);
  sparsek::launch_dependent(trajectory_resample_tma, blocks, 32 * plan.warps,
                            plan.capacity * row_bytes, p, plan);
}

int main(int argc, char** argv) {
  return sparsek::run<sparsek::Problem>(
      argc, argv,
      {"trajectory_resample_tma", sparsek::require_whole_vectors, prepare, launch});
}
