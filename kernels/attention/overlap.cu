// Rung 4, attention_overlap: the exponentials of the first keys run while the products of later
// keys do, and while those keys still come.
//   * A weight needs an offset near the row's largest score, not that score itself: the largest of
//     the first 64 keys serves. Weights of later keys may then exceed 1. Where one might exceed what
//     fp16 holds, the thread block starts again with the largest of all, which takes twice as long.
//   * The products of a tile's weights with its values are started a quarter at a time, between the
//     exponentials of the next tile.
//   * A warp of its own starts all copies, in the order of their use. The products of the scores
//     read Q from shared memory, as the registers hold more than before.
//   * The launch is a dependent one: barriers and tensor map are ready when the kernel before ends.
//
// What was tried and is not here: an eighth or a quarter of the exponentials as polynomials on the
// FMA pipe (1 and 4 % slower: instructions bound it as much as the exponentials do); two thread
// blocks that share each copy (multicast; their start costs 0.6 us); thread blocks of half the
// shared memory, so that the next launch's fit beside them (too few registers: 12 % slower).
//
// Thread block: 2 warp groups, the same 64 queries, KEYS / 2 keys each in tiles of 64; and a warp
//   that starts the copies.
// Grid: x the tiles of 64 queries of all heads.
// Shared memory (dynamic): as attention_wgmma, and 8 bytes for the flag that weights are too large.
// Barriers: full_q, and for each tile full_k and full_v, used once: 1 arrival (the thread that
//   starts the copy) and the bytes; whoever reads the tile waits. One for all threads at the start
//   (the barriers are there), and named barrier 1 for the warp groups at the end (what they give each
//   other is there).
#include <type_traits>

#include "../common/dependent_launch.cuh"
#include "../common/harness.cuh"
#include "../common/mbarrier.cuh"
#include "../common/quad.cuh"
#include "../common/tma.cuh"
#include "../common/wgmma.cuh"
#include "problem.cuh"

#ifndef KEYS
#define KEYS 512
#endif

namespace {

using sparsek::AttentionOperands;
using sparsek::Barrier;
using sparsek::kFeatures;
using sparsek::Major;

constexpr int kKeys = KEYS;  // of a head
constexpr int kWarpGroup = 128;
constexpr int kGroups = 2;
constexpr int kConsumers = kGroups * kWarpGroup;  // threads
constexpr int kThreads = kConsumers + 32;
constexpr int kQueries = 64;  // of a thread block, and rows of a product
constexpr int kProductK = 16;
constexpr int kTileKeys = 64;
constexpr int kTiles = kKeys / kTileKeys;
constexpr int kOwnTiles = kTiles / kGroups;     // of a warp group
constexpr float kScale = 0.125f * 1.44269504f;  // log2(e) / sqrt(D)
// Of the weights of a row in a warp group: their sum, so each of them. fp16 holds 65,504.
constexpr float kLargestSum = 32768;

constexpr int kRowBytes = kFeatures * static_cast<int>(sizeof(__half));
constexpr int kTileBytes = kTileKeys * kRowBytes;
constexpr int kGroupBytes = 8 * kRowBytes;  // 8 rows of a tile, one period of the swizzle
constexpr int kScoreSteps = kFeatures / kProductK;
constexpr int kOutSteps = kTileKeys / kProductK;
constexpr int kScores = kTileKeys / 2;  // of a tile, in a thread
constexpr int kSums = kFeatures / 2;    // of the output, in a thread
constexpr int kKept = kSums / kGroups;  // of these, finished here; the others are given away
constexpr int kGivenVectors = kKept / 4;

constexpr int kAlignment = 1024;  // of a 128-byte swizzle
constexpr int kBarriers = 1 + 2 * kTiles;
constexpr int kSharedBytes = (1 + 2 * kTiles) * kTileBytes +
                             kConsumers * (kGivenVectors + 1) * static_cast<int>(sizeof(float4)) +
                             (kBarriers + 1) * static_cast<int>(sizeof(Barrier)) + kAlignment;

static_assert(kRowBytes == 128, "a row is as wide as the swizzle; kScale holds sqrt(64)");
static_assert(kQueries == kTileKeys, "one tensor map has the boxes of all copies");
static_assert(kKeys % (kGroups * kTileKeys) == 0, "the warp groups' keys are whole tiles");
static_assert(kOwnTiles >= 2, "the scores of a second tile are started with the first");
static_assert(kSharedBytes <= 227 * 1024, "all keys and values fit in shared memory");

__device__ __forceinline__ std::uint32_t pack(float x, float y) {
  const __half2 pair = __floats2half2_rn(x, y);
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}

// sparsek::wgmma_m64n64k16 with a in shared memory too; a and b in rows of k.
__device__ __forceinline__ void product_of_rows(float (&d)[32], std::uint64_t a, std::uint64_t b,
                                                bool accumulate) {
  asm volatile(
      "{\n"
      ".reg .pred accumulate;\n"
      "setp.ne.b32 accumulate, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, "
      "%8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, "
      "%24, %25, %26, %27, %28, %29, %30, %31"
      "}, %32, %33, accumulate, 1, 1, 0, 0;\n"
      "}\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]),
        "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]),
        "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]),
        "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
        "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
        "+f"(d[30]), "+f"(d[31])
      : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)));
}

// Sets a flag in shared memory where the condition is met.
__device__ __forceinline__ void set_if(int* flag, bool condition) {
  asm volatile(
      "{\n"
      ".reg .pred met;\n"
      "setp.ne.s32 met, %1, 0;\n"
      "@met red.shared.or.b32 [%0], 1;\n"
      "}\n" ::"r"(sparsek::shared_address(flag)),
      "r"(static_cast<int>(condition))
      : "memory");
}

// The largest of a thread's scores in one of its two rows: `half` is 0 for the upper, 1 for the
// lower.
__device__ __forceinline__ float largest(const float (&scores)[kScores], int half) {
  float most[2] = {scores[half * 2], scores[half * 2 + 1]};
#pragma unroll
  for (int i = half * 2 + 4; i < kScores; i += 4) {
    most[0] = fmaxf(most[0], scores[i]);
    most[1] = fmaxf(most[1], scores[i + 1]);
  }
  return fmaxf(most[0], most[1]);
}

}  // namespace

// 64 queries of one head. `rows`: of Q, of K, of V.
extern "C" __global__ void __launch_bounds__(kThreads, 1)
    attention_overlap(__half* out, int rows, const __grid_constant__ CUtensorMap map) {
  extern __shared__ unsigned char shared[];
  const std::uint32_t misaligned = sparsek::shared_address(shared) % kAlignment;
  unsigned char* const shared_q = shared + (kAlignment - misaligned) % kAlignment;
  unsigned char* const shared_k = shared_q + kTileBytes;
  unsigned char* const shared_v = shared_k + kTiles * kTileBytes;
  float4* const shared_sums = reinterpret_cast<float4*>(shared_v + kTiles * kTileBytes);
  float4* const shared_softmax = shared_sums + kConsumers * kGivenVectors;
  Barrier* const full_q = reinterpret_cast<Barrier*>(shared_softmax + kConsumers);
  Barrier* const full_k = full_q + 1;
  Barrier* const full_v = full_k + kTiles;
  int* const too_large = reinterpret_cast<int*>(full_v + kTiles);  // not 0: a sum of weights is

  // The same in all lanes, and known to be.
  const int warp = __shfl_sync(0xFFFFFFFFu, threadIdx.x / 32, 0);
  const int lane = threadIdx.x % 32;
  const int thread = threadIdx.x % kWarpGroup;
  const int first_query = blockIdx.x * kQueries;
  // Read here, because a parameter's first read waits for memory, and the stores come last.
  __half* tile_out = out + static_cast<std::size_t>(first_query) * kFeatures;
  asm volatile("" : "+l"(tile_out));

  if (threadIdx.x == kConsumers) {
    sparsek::tma_prefetch_map(&map);
    for (int i = 0; i < kBarriers; ++i) sparsek::barrier_init(full_q + i, 1);
    sparsek::barrier_init_fence();
    *too_large = 0;
  }
  __syncthreads();
  sparsek::wait_for_prerequisites();

  if (warp == kConsumers / 32) {
    if (lane == 0) {
      const int head = first_query / kKeys * kKeys;
      const auto load = [&](unsigned char* to, int row, Barrier* full) {
        sparsek::barrier_arrive_expect(full, kTileBytes);
        sparsek::tma_load(to, &map, row, 0, full);
      };
      load(shared_q, first_query, full_q);
      // Values come a turn after their keys.
#pragma unroll
      for (int turn = 0; turn <= kOwnTiles; ++turn) {
#pragma unroll
        for (int group = 0; group < kGroups; ++group) {
          const int key = group * kOwnTiles + turn, value = key - 1;
          if (turn < kOwnTiles) {
            load(shared_k + key * kTileBytes, rows + head + key * kTileKeys, full_k + key);
          }
          if (turn > 0) {
            load(shared_v + value * kTileBytes, 2 * rows + head + value * kTileKeys,
                 full_v + value);
          }
        }
      }
    }
    sparsek::launch_dependents();
    return;
  }

  const int warp_group = warp / 4;
  const int first_tile = warp_group * kOwnTiles;
  const std::uint64_t operand_q = sparsek::operand_128(shared_q, 0, kGroupBytes);
  const std::uint64_t operand_k =
      sparsek::operand_128(shared_k + first_tile * kTileBytes, 0, kGroupBytes);
  const std::uint64_t operand_v =
      sparsek::operand_128(shared_v + first_tile * kTileBytes, 0, kGroupBytes);
  float scores[kOwnTiles][kScores];
  std::uint32_t weights[kOwnTiles][kOutSteps][4];
  float sums[kSums];
  float offset[2];  // in the exponent of 2
  float weight_sum[2] = {0, 0};  // of this thread's columns

  const auto start_scores = [&](float (&into)[kScores], int tile) {
    sparsek::barrier_wait(full_k + first_tile + tile, 0);
    sparsek::wgmma_fence();
#pragma unroll
    for (int k = 0; k < kScoreSteps; ++k) {
      product_of_rows(into, sparsek::advance(operand_q, k * kProductK * 2),
                      sparsek::advance(operand_k, tile * kTileBytes + k * kProductK * 2), k > 0);
    }
    sparsek::wgmma_commit();
  };
  // Of 16 keys: their weights, and their products with the values.
  const auto weigh = [&](const float (&from)[kScores], std::uint32_t (&to)[kOutSteps][4], int k) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float* const pair = from + k * 8 + i * 2;
      const float x = sparsek::exp2_approx(fmaf(pair[0], kScale, -offset[i % 2]));
      const float y = sparsek::exp2_approx(fmaf(pair[1], kScale, -offset[i % 2]));
      weight_sum[i % 2] += x + y;
      to[k][i] = pack(x, y);
    }
  };
  const auto start_sums = [&](const std::uint32_t (&of)[kOutSteps][4], int tile, int k) {
    sparsek::wgmma_m64n64k16<Major::kColumns>(
        sums, of[k], sparsek::advance(operand_v, tile * kTileBytes + k * kProductK * kRowBytes),
        tile > 0 || k > 0);
  };

  sparsek::barrier_wait(full_q, 0);
  start_scores(scores[0], 0);
#pragma unroll
  for (int tile = 0; tile < kOwnTiles; ++tile) {
    // From the third tile on, the products with the values two tiles back may still be under way.
    if (tile < 2) {
      sparsek::wgmma_wait<0>();
    } else {
      sparsek::wgmma_wait<1>();
    }
    sparsek::wgmma_settle(scores[tile]);
    if (tile == 0) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        offset[half] = sparsek::quad_max(largest(scores[0], half)) * kScale;
      }
    }
    if (tile + 1 < kOwnTiles) start_scores(scores[tile + 1], tile + 1);
    if (tile > 0) {
      sparsek::barrier_wait(full_v + first_tile + tile - 1, 0);
      sparsek::wgmma_fence();
    }
#pragma unroll
    for (int k = 0; k < kOutSteps; ++k) {
      weigh(scores[tile], weights[tile], k);
      if (tile > 0) start_sums(weights[tile - 1], tile - 1, k);
    }
    if (tile > 0) sparsek::wgmma_commit();
    // Here, in every tile, it also keeps the compiler from moving exponentials into the next one,
    // which takes more registers than there are.
    set_if(too_large, !(weight_sum[0] < kLargestSum && weight_sum[1] < kLargestSum));
  }
  // Not before: thread blocks that only wait would take the multiprocessors that this launch leaves.
  sparsek::launch_dependents();
  sparsek::barrier_wait(full_v + first_tile + kOwnTiles - 1, 0);
  sparsek::wgmma_fence();
#pragma unroll
  for (int k = 0; k < kOutSteps; ++k) start_sums(weights[kOwnTiles - 1], kOwnTiles - 1, k);
  sparsek::wgmma_commit();

  // All of it once more, with the largest scores as offsets. Short code, as few inputs need it.
  const auto start_again = [&] {
    float top[2] = {-INFINITY, -INFINITY};
#pragma unroll 1
    for (int tile = 0; tile < kOwnTiles; ++tile) {
      start_scores(scores[0], tile);
      sparsek::wgmma_wait<0>();
      sparsek::wgmma_settle(scores[0]);
#pragma unroll
      for (int half = 0; half < 2; ++half) top[half] = fmaxf(top[half], largest(scores[0], half));
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      offset[half] = sparsek::quad_max(top[half]) * kScale;
      weight_sum[half] = 0;
    }
#pragma unroll 1
    for (int tile = 0; tile < kOwnTiles; ++tile) {
      start_scores(scores[0], tile);
      sparsek::wgmma_wait<0>();
      sparsek::wgmma_settle(scores[0]);
#pragma unroll
      for (int k = 0; k < kOutSteps; ++k) weigh(scores[0], weights[0], k);
      sparsek::wgmma_fence();
#pragma unroll
      for (int k = 0; k < kOutSteps; ++k) start_sums(weights[0], tile, k);
      sparsek::wgmma_commit();
      sparsek::wgmma_wait<0>();
      sparsek::wgmma_settle(sums);
    }
  };

  // Merge: a warp group finishes its upper or its lower rows, and gives the others away. Code of
  // its own for each, as selecting the rows takes an instruction for every sum; the barrier between
  // is one for both.
  const auto give = [&](auto to) {
    constexpr int kTo = decltype(to)::value;
#pragma unroll
    for (int i = 0; i < kGivenVectors; ++i) {
      const float* const given = sums + i * 8 + kTo * 2;
      shared_sums[(kTo * kGivenVectors + i) * kWarpGroup + thread] =
          make_float4(given[0], given[1], given[4], given[5]);
    }
  };
  const auto finish = [&](auto own) {
    constexpr int kOwn = decltype(own)::value;
    const float4 softmax = shared_softmax[kOwn * kWarpGroup + thread];
    const float other_offset = kOwn == 0 ? softmax.x : softmax.y;
    const float both = fmaxf(offset[kOwn], other_offset);
    float own_factor = sparsek::exp2_approx(offset[kOwn] - both);
    float other_factor = sparsek::exp2_approx(other_offset - both);
    const float inverse = __fdividef(1.0f, weight_sum[kOwn] * own_factor +
                                               (kOwn == 0 ? softmax.z : softmax.w) * other_factor);
    own_factor *= inverse;
    other_factor *= inverse;

    std::uint32_t words[2][4];
#pragma unroll
    for (int i = 0; i < kGivenVectors; ++i) {
      const float4 given = shared_sums[(kOwn * kGivenVectors + i) * kWarpGroup + thread];
      const float* const kept = sums + i * 8 + kOwn * 2;
      words[i / 2][i % 2 * 2] = pack(fmaf(kept[0], own_factor, given.x * other_factor),
                                     fmaf(kept[1], own_factor, given.y * other_factor));
      words[i / 2][i % 2 * 2 + 1] = pack(fmaf(kept[4], own_factor, given.z * other_factor),
                                         fmaf(kept[5], own_factor, given.w * other_factor));
    }
    const int row = warp % 4 * 16 + kOwn * 8 + lane / 4;
    __half* const row_out = tile_out + row * kFeatures + lane % 4 * 8;
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      sparsek::quad_transpose(words[side]);
      *reinterpret_cast<uint4*>(row_out + side * kFeatures / 2) =
          make_uint4(words[side][0], words[side][1], words[side][2], words[side][3]);
    }
  };
  using First = std::integral_constant<int, 0>;
  using Second = std::integral_constant<int, 1>;
  const auto exchange = [&] {
#pragma unroll
    for (int half = 0; half < 2; ++half) weight_sum[half] = sparsek::quad_sum(weight_sum[half]);
    shared_softmax[(1 - warp_group) * kWarpGroup + thread] =
        make_float4(offset[0], offset[1], weight_sum[0], weight_sum[1]);
    sparsek::wgmma_wait<0>();
    sparsek::wgmma_settle(sums);
    if (warp_group == 0) {
      give(Second{});
    } else {
      give(First{});
    }
  };
  exchange();
  sparsek::named_barrier(1, kConsumers);
  if (*too_large != 0) {
    start_again();
    exchange();
    sparsek::named_barrier(1, kConsumers);
  }
  if (warp_group == 0) {
    finish(First{});
  } else {
    finish(Second{});
  }
}

static void require(const sparsek::AttentionShape& shape) {
  if (shape.sequence == kKeys) return;
  sparsek::usage_error("--sequence " + std::to_string(shape.sequence) + " is not " +
                       std::to_string(kKeys) + ", the keys that this kernel was built for");
}

static void prepare() {
  SPARSEK_CUDA_CHECK(cudaFuncSetAttribute(
      attention_overlap, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
}

static void launch(const AttentionOperands& p) {
  const int rows = p.heads * p.sequence;
  const CUtensorMap map = sparsek::matrix_map(p.q, static_cast<std::uint64_t>(3) * rows, kFeatures,
                                              kTileKeys, kFeatures, CU_TENSOR_MAP_SWIZZLE_128B);
  sparsek::launch_dependent(attention_overlap, rows / kQueries, kThreads, kSharedBytes, p.out,
                            rows, map);
}

int main(int argc, char** argv) {
  return sparsek::run<sparsek::Attention>(argc, argv,
                                          {"attention_overlap", require, prepare, launch});
}
