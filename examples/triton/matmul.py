"""C = A·B in fp16, autotuned: `python3 matmul.py [--size N] [--launches N]`."""

import sys

import torch
import triton
import triton.language as tl

import bench

CONFIGS = [
    triton.Config({"M": 128, "N": 128, "K": 64}, num_warps=4, num_stages=3),
    triton.Config({"M": 128, "N": 256, "K": 64}, num_warps=8, num_stages=3),
    triton.Config({"M": 64, "N": 128, "K": 64}, num_warps=4, num_stages=4),
]


@triton.autotune(configs=CONFIGS, key=["size"])
@triton.jit
def matmul_kernel(a, b, c, size, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    # Tiles of eight rows of C follow each other, so that their part of B stays in L2.
    tile, across = tl.program_id(0), size // N
    group = tile // (8 * across) * 8
    high = min(size // M - group, 8)
    row = group + tile % (8 * across) % high
    column = tile % (8 * across) // high
    rows = row * M + tl.arange(0, M)
    columns = column * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    sums = tl.zeros((M, N), dtype=tl.float32)
    for start in range(0, size, K):
        left = tl.load(a + rows[:, None] * size + (start + inner)[None, :])
        right = tl.load(b + (start + inner)[:, None] * size + columns[None, :])
        sums = tl.dot(left, right, sums)
    tl.store(c + rows[:, None] * size + columns[None, :], sums.to(tl.float16))


def matmul(a, b, c):
    """All sizes are multiples of 256."""
    size = a.shape[0]
    matmul_kernel[lambda chosen: (size // chosen["M"] * (size // chosen["N"]),)](a, b, c, size)


if __name__ == "__main__":
    options = bench.options(size=4096, launches=1)
    a, b = (torch.randn(options.size, options.size, device="cuda", dtype=torch.float16) for _ in "ab")
    c = torch.full_like(a, float("nan"))
    bench.measured(options.launches, lambda: matmul(a, b, c))
    tuned = {"matmul_kernel": str(matmul_kernel.best_config)}
    sys.exit(bench.judged(c, a.float() @ b.float(), rtol=0.01, atol=0.5, tuned=tuned))
