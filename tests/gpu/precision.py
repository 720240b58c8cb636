"""Launches one Triton kernel of one name, whose products are of the type that is named.

    precision.py bf16|fp8|fp32|tf32 [LAUNCHES]
"""

import sys

import torch
import triton
import triton.language as tl


@triton.jit
def product(a, b, c, n: tl.constexpr, precision: tl.constexpr, tile: tl.constexpr, depth: tl.constexpr):
    rows = tl.program_id(0) * tile + tl.arange(0, tile)
    columns = tl.program_id(1) * tile + tl.arange(0, tile)
    inner = tl.arange(0, depth)
    total = tl.zeros((tile, tile), dtype=tl.float32)
    for first in range(0, n, depth):
        left = tl.load(a + rows[:, None] * n + first + inner[None, :])
        # The second operand is stored by columns.
        right = tl.load(b + columns[None, :] * n + first + inner[:, None])
        total = tl.dot(left, right, total, input_precision=precision)
    tl.store(c + rows[:, None] * n + columns[None, :], total)


TYPES = {
    "bf16": (torch.bfloat16, "tf32"),
    "fp8": (torch.float8_e4m3fn, "tf32"),
    "fp32": (torch.float32, "ieee"),
    "tf32": (torch.float32, "tf32"),
}
dtype, precision = TYPES[sys.argv[1]]
n = 1024
a, b = (torch.randn(n, n, device="cuda").to(dtype) for _ in range(2))
c = torch.empty(n, n, device="cuda")
for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 24):
    product[(n // 64, n // 64)](a, b, c, n, precision, 64, 32)
torch.cuda.synchronize()
