// Rung 4, attention_overlap: copies, products and exponentials run at the same time, and little
// else is left to do.
//   * A weight needs an offset near the row's largest score, not that score itself: the largest of
//     the first 16 keys serves both warp groups. Later weights may then exceed 1. Where one exceeds
//     what fp16 holds, the thread block starts again with the largest of all: twice the time.
//   * A quarter of a tile at a time: its exponentials, the products of the weights before with
//     their values, and the scores of the next tile. So the tensor cores always have a little work.
//   * A column of ones beside the values: the products also sum the weights.
//   * One exponential of eight is a polynomial on the FMA pipe.
//   * A warp of its own starts all copies, in the order of their use. The products of the scores
//     read Q from shared memory.
//   * The launch is a dependent one: barriers and tensor map are ready when the kernel before ends.
// What it gained: docs/kernels.md.
//
// What was tried and is not here, in time of a launch (H200, 2026-11-26): another first tile for
// each thread block (+6 %: those of a head that read the same tile at the same time share what L2
// delivers); all products of a tile at once (+2 %); Q in registers (+1 %); the first tiles copied
// by the threads (cp.async, +2 %); a quarter of the exponentials as polynomials (no gain over an
// eighth). Of an earlier form: two thread blocks that share each copy (multicast; their start costs
// 0.6 us); thread blocks of half the shared memory, so that the next launch's fit beside them (too
// few registers: +12 %).
//
// Thread block: 2 warp groups, the same 64 queries, KEYS / 2 keys each in tiles of 64; and a warp
//   that starts the copies.
// Grid: x the tiles of 64 queries of all heads.
// Shared memory (dynamic): Q, all keys and values of the head, each tile 8 KiB with a 128-byte
//   swizzle; the ones, 2 KiB; what the warp groups give each other, 17 KiB; the barriers.
// Barriers: full[g][0] to full[g][tiles of a group], used once: 1 arrival (the thread that starts
//   the copies) and the bytes; whoever reads the tiles waits. full[g][0] is for the first keys, and
//   for Q where g is 0; full[g][i] is for the keys of tile i and the values of the tile before.
//   __syncthreads at the start: the barriers above are initialized.
//   Named barrier 1, of the warp groups, at the end: they exchanged their sums, and know whether
//   any row starts again.
#include <type_traits>

#include "../common/dependent_launch.cuh"
#include "../common/harness.cuh"
#include "../common/mbarrier.cuh"
#include "../common/quad.cuh"
#include "../common/tma.cuh"
#include "../common/wgmma.cuh"
#include "one_buffer.cuh"
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

constexpr int kRowBytes = kFeatures * static_cast<int>(sizeof(__half));
constexpr int kTileBytes = kTileKeys * kRowBytes;
constexpr int kGroupBytes = 8 * kRowBytes;  // 8 rows of a tile, one period of the swizzle
constexpr int kOnesBytes = kProductK * kRowBytes;
constexpr int kSteps = kTileKeys / kProductK;  // of a tile's products with its values
constexpr int kScores = kTileKeys / 2;         // of a tile, in a thread
constexpr int kFewScores = 8;                  // of 16 keys, in a thread
constexpr int kOutputs = kFeatures / 2;        // of the output, in a thread
constexpr int kSums = kOutputs + 4;            // and those of the ones
constexpr int kGiven = kOutputs / kGroups;     // given to the other warp group, which finishes them
constexpr int kGivenVectors = kGiven / 4;

constexpr int kAlignment = 1024;  // of a 128-byte swizzle
constexpr int kBarriers = kGroups * (kOwnTiles + 1);
constexpr int kSharedBytes = (1 + 2 * kTiles) * kTileBytes + kOnesBytes +
                             kConsumers * (kGiven + 1) * static_cast<int>(sizeof(float)) +
                             kBarriers * static_cast<int>(sizeof(Barrier)) + kAlignment;

static_assert(kRowBytes == 128, "a row is as wide as the swizzle; kScale holds sqrt(64)");
static_assert(kQueries == kTileKeys, "one tensor map has the boxes of all copies");
static_assert(kFeatures == kTileKeys, "a tile's scores take as many steps as its sums");
static_assert(kKeys % (kGroups * kTileKeys) == 0, "the warp groups' keys are whole tiles");
static_assert(kOwnTiles >= 2, "the last tile has one before it");
static_assert(kKeys <= 512, "more keys were never tried");
static_assert(kSharedBytes <= 227 * 1024, "all keys and values fit in shared memory");

__device__ __forceinline__ std::uint32_t pack(float x, float y) {
  const __half2 pair = __floats2half2_rn(x, y);
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}

// 2^x on the FMA pipe; from 128 on it is infinite, and below -126 it is 2^-126. The polynomial
// interpolates 2^r at the zeros of the Chebyshev polynomial of degree 5 on [-0.5, 0.5]. Its
// relative error there is at most 3.6e-6, which fits into the bound for ex2.approx and the rises of
// a maximum (reference.cuh).
__device__ __forceinline__ float exp2_polynomial(float x) {
  constexpr float kToInteger = 12582912;  // 1.5 * 2^23: in a sum with it, the unit is the last bit
  x = fminf(fmaxf(x, -126), 128);
  const float shifted = x + kToInteger;
  const float r = x - (shifted - kToInteger);
  float y = fmaf(0.0096663685f, r, 0.055921976f);
  y = fmaf(y, r, 0.24022349f);
  y = fmaf(y, r, 0.69312105f);
  y = fmaf(y, r, 1.0f);
  return __int_as_float(__float_as_int(y) + (__float_as_int(shifted) << 23));
}

// sparsek::named_barrier that also says whether any of its threads meets the condition.
__device__ __forceinline__ bool named_barrier_or(int number, int threads, bool condition) {
  int any;
  asm volatile(
      "{\n"
      ".reg .pred mine, any;\n"
      "setp.ne.s32 mine, %3, 0;\n"
      "barrier.cta.red.or.pred.aligned any, %1, %2, mine;\n"
      "selp.s32 %0, 1, 0, any;\n"
      "}\n"
      : "=r"(any)
      : "r"(number), "r"(threads), "r"(static_cast<int>(condition))
      : "memory");
  return any != 0;
}

// The largest of a thread's first scores in one of its two rows: `half` is 0 for the upper, 1 for
// the lower.
template <int kCount, int kAll>
__device__ __forceinline__ float largest(const float (&scores)[kAll], int half) {
  float most[2] = {scores[half * 2], scores[half * 2 + 1]};
#pragma unroll
  for (int i = half * 2 + 4; i < kCount; i += 4) {
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
  unsigned char* const shared_ones = shared_v + kTiles * kTileBytes;
  float4* const shared_given = reinterpret_cast<float4*>(shared_ones + kOnesBytes);
  float* const shared_weights = reinterpret_cast<float*>(shared_given + kConsumers * kGivenVectors);
  Barrier* const full_of_first = reinterpret_cast<Barrier*>(shared_weights + kConsumers);
  Barrier* const full_of_second = full_of_first + kOwnTiles + 1;

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
    for (int i = 0; i < kBarriers; ++i) sparsek::barrier_init(full_of_first + i, 1);
    sparsek::barrier_init_fence();
  }
  if (threadIdx.x < kOnesBytes / sizeof(uint4)) {
    const std::uint32_t ones = pack(1, 1);
    reinterpret_cast<uint4*>(shared_ones)[threadIdx.x] = make_uint4(ones, ones, ones, ones);
    sparsek::async_proxy_fence();
  }
  __syncthreads();
  sparsek::wait_for_prerequisites();

  if (warp == kConsumers / 32) {
    if (lane == 0) {
      const int first_key = rows + first_query / kKeys * kKeys;
      const auto load_keys = [&](int tile, Barrier* full) {
        sparsek::tma_load(shared_k + tile * kTileBytes, &map, first_key + tile * kTileKeys, 0,
                          full);
      };
      const auto load_values = [&](int tile, Barrier* full) {
        sparsek::tma_load(shared_v + tile * kTileBytes, &map,
                          rows + first_key + tile * kTileKeys, 0, full);
      };
      sparsek::barrier_arrive_expect(full_of_first, 2 * kTileBytes);
      sparsek::tma_load(shared_q, &map, first_query, 0, full_of_first);
      load_keys(0, full_of_first);
      sparsek::barrier_arrive_expect(full_of_second, kTileBytes);
      load_keys(kOwnTiles, full_of_second);
#pragma unroll
      for (int turn = 1; turn <= kOwnTiles; ++turn) {
        const bool keys = turn < kOwnTiles;
#pragma unroll
        for (int group = 0; group < kGroups; ++group) {
          Barrier* const full = (group == 0 ? full_of_first : full_of_second) + turn;
          const int tile = group * kOwnTiles + turn;
          sparsek::barrier_arrive_expect(full, (keys ? 2 : 1) * kTileBytes);
          if (keys) load_keys(tile, full);
          load_values(tile - 1, full);
        }
      }
    }
    sparsek::launch_dependents();
    return;
  }

  const int warp_group = warp / 4;
  Barrier* const full = warp_group == 0 ? full_of_first : full_of_second;
  unsigned char* const own_k = shared_k + warp_group * kOwnTiles * kTileBytes;
  unsigned char* const own_v = shared_v + warp_group * kOwnTiles * kTileBytes;
  const std::uint64_t operand_q = sparsek::operand_128(shared_q, 0, kGroupBytes);
  const std::uint64_t operand_k = sparsek::operand_128(own_k, 0, kGroupBytes);
  const std::uint64_t operand_v = sparsek::operand_128(
      own_v, static_cast<std::uint32_t>(shared_ones - own_v), kGroupBytes);
  float scores[kOwnTiles][kScores];
  std::uint32_t weights[kOwnTiles][kSteps][4];
  float sums[kSums];  // the last four of the ones: twice the upper row's weights, twice the lower's
  float offset[2];    // in the exponent of 2

  // 16 features of a tile's scores.
  const auto start_scores = [&](float (&into)[kScores], int tile, int step) {
    const int bytes = step * kProductK * static_cast<int>(sizeof(__half));
    sparsek::wgmma_m64n64k16<Major::kK>(into, sparsek::advance(operand_q, bytes),
                                        sparsek::advance(operand_k, tile * kTileBytes + bytes),
                                        step > 0);
  };
  // 16 keys of a tile: their weights.
  const auto weigh = [&](const float (&from)[kScores], std::uint32_t (&to)[kSteps][4], int step) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float* const pair = from + step * 8 + i * 2;
      const float x = fmaf(pair[0], kScale, -offset[i % 2]);
      const float y = fmaf(pair[1], kScale, -offset[i % 2]);
      to[step][i] = pack(sparsek::exp2_approx(x),
                         i == 3 ? exp2_polynomial(y) : sparsek::exp2_approx(y));
      // Here, and not beside a later tile: the exponentials are what takes longest.
      asm volatile("" : "+r"(to[step][i])::"memory");
    }
  };
  // 16 keys of a tile: the products of their weights with their values, and with the ones.
  const auto start_sums = [&](const std::uint32_t (&of)[kSteps][4], int tile, int step) {
    const std::uint64_t on = (tile * kTileBytes + step * kProductK * kRowBytes) >> 4;
    // So much further on, the ones are so much nearer: see sparsek::operand_128.
    sparsek::wgmma_m64n72k16<Major::kColumns>(sums, of[step], operand_v + on - (on << 16),
                                              tile > 0 || step > 0);
  };

  // The second warp group has the first keys' scores, too: with the same offset, the sums of both
  // are added as they are.
  sparsek::barrier_wait(full_of_first, 0);
  if (warp_group == 1) {
    float few[kFewScores];
    const std::uint64_t operand_first = sparsek::operand_128(shared_k, 0, kGroupBytes);
    sparsek::wgmma_fence();
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const int bytes = step * kProductK * static_cast<int>(sizeof(__half));
      sparsek::wgmma_m64n16k16<Major::kK>(few, sparsek::advance(operand_q, bytes),
                                          sparsek::advance(operand_first, bytes), step > 0);
    }
    sparsek::wgmma_commit();
    sparsek::wgmma_wait<0>();
    sparsek::wgmma_settle(few);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      offset[half] = sparsek::quad_max(largest<kFewScores>(few, half)) * kScale;
    }
    sparsek::barrier_wait(full, 0);
  }
  sparsek::wgmma_fence();
#pragma unroll
  for (int step = 0; step < kSteps; ++step) start_scores(scores[0], 0, step);
  sparsek::wgmma_commit();
#pragma unroll
  for (int tile = 0; tile < kOwnTiles; ++tile) {
    const bool last = tile == kOwnTiles - 1;
    sparsek::wgmma_wait<0>();
    sparsek::wgmma_settle(scores[tile]);
    if (tile == 0 && warp_group == 0) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        offset[half] = sparsek::quad_max(largest<kFewScores>(scores[0], half)) * kScale;
      }
    }
    if (!last) {
      sparsek::barrier_wait(full + tile + 1, 0);
      sparsek::wgmma_fence();
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        weigh(scores[tile], weights[tile], step);
        if (tile > 0) start_sums(weights[tile - 1], tile - 1, step);
        start_scores(scores[tile + 1], tile + 1, step);
      }
      sparsek::wgmma_commit();
      continue;
    }
    // No scores are left to start, so this tile's weights need not wait for a next one.
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      weigh(scores[tile], weights[tile], step);
      if (step == 0) {
        sparsek::wgmma_fence();
#pragma unroll
        for (int before = 0; before < kSteps; ++before) {
          start_sums(weights[tile - 1], tile - 1, before);
        }
        // Not earlier: thread blocks that only wait would take the multiprocessors that this launch
        // leaves.
        sparsek::launch_dependents();
        sparsek::barrier_wait(full + kOwnTiles, 0);
      }
      sparsek::wgmma_fence();
      start_sums(weights[tile], tile, step);
      sparsek::wgmma_commit();
    }
  }

  // All of it once more, with the largest scores as offsets. Short code, as few inputs need it.
  const auto start_again = [&] {
    const auto all_scores = [&](int tile) {
      sparsek::wgmma_fence();
#pragma unroll
      for (int step = 0; step < kSteps; ++step) start_scores(scores[0], tile, step);
      sparsek::wgmma_commit();
      sparsek::wgmma_wait<0>();
      sparsek::wgmma_settle(scores[0]);
    };
    float top[2] = {-INFINITY, -INFINITY};
#pragma unroll 1
    for (int tile = 0; tile < kOwnTiles; ++tile) {
      all_scores(tile);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        top[half] = fmaxf(top[half], largest<kScores>(scores[0], half));
      }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) top[half] = sparsek::quad_max(top[half]) * kScale;
    // Nobody reads what was given before.
    float2* const shared_top = reinterpret_cast<float2*>(shared_given);
    shared_top[threadIdx.x] = make_float2(top[0], top[1]);
    sparsek::named_barrier(1, kConsumers);
    const float2 other = shared_top[(1 - warp_group) * kWarpGroup + thread];
    offset[0] = fmaxf(top[0], other.x);
    offset[1] = fmaxf(top[1], other.y);
    sparsek::named_barrier(1, kConsumers);
#pragma unroll 1
    for (int tile = 0; tile < kOwnTiles; ++tile) {
      all_scores(tile);
#pragma unroll
      for (int step = 0; step < kSteps; ++step) weigh(scores[0], weights[0], step);
      sparsek::wgmma_fence();
#pragma unroll
      for (int step = 0; step < kSteps; ++step) start_sums(weights[0], tile, step);
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
    shared_weights[kTo * kWarpGroup + thread] = sums[kOutputs + kTo * 2];
#pragma unroll
    for (int i = 0; i < kGivenVectors; ++i) {
      const float* const given = sums + i * 8 + kTo * 2;
      shared_given[(kTo * kGivenVectors + i) * kWarpGroup + thread] =
          make_float4(given[0], given[1], given[4], given[5]);
    }
  };
  const auto finish = [&](auto own) {
    constexpr int kOwn = decltype(own)::value;
    const float inverse = __fdividef(
        1.0f, sums[kOutputs + kOwn * 2] + shared_weights[kOwn * kWarpGroup + thread]);
    std::uint32_t words[2][4];
#pragma unroll
    for (int i = 0; i < kGivenVectors; ++i) {
      const float4 given = shared_given[(kOwn * kGivenVectors + i) * kWarpGroup + thread];
      const float* const kept = sums + i * 8 + kOwn * 2;
      words[i / 2][i % 2 * 2] =
          pack((kept[0] + given.x) * inverse, (kept[1] + given.y) * inverse);
      words[i / 2][i % 2 * 2 + 1] =
          pack((kept[4] + given.z) * inverse, (kept[5] + given.w) * inverse);
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
    sparsek::wgmma_wait<0>();
    sparsek::wgmma_settle(sums);
    if (warp_group == 0) {
      give(Second{});
    } else {
      give(First{});
    }
  };
  exchange();
  // A weight that fp16 cannot hold is infinite, and so is the sum.
  const bool held = sums[kOutputs] < INFINITY && sums[kOutputs + 2] < INFINITY;
  if (named_barrier_or(1, kConsumers, !held)) {
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

static void require(const sparsek::AttentionShape& shape) { sparsek::require_keys(shape, kKeys); }

static void prepare() {
  SPARSEK_CUDA_CHECK(cudaFuncSetAttribute(
      attention_overlap, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
}

static void launch(const AttentionOperands& p) {
  const CUtensorMap map = sparsek::one_buffer_map(p, kKeys, kTileKeys);
  const int rows = p.heads * p.sequence;
  sparsek::launch_dependent(attention_overlap, rows / kQueries, kThreads, kSharedBytes, p.out,
                            rows, map);
}

int main(int argc, char** argv) {
  return sparsek::run<sparsek::Attention>(argc, argv,
                                          {"attention_overlap", require, prepare, launch});
}
