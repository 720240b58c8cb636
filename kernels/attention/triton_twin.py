"""Attention in Triton, to compare with: attention_triton.

Its configuration is fixed, so that every process runs the same code. ci/peers times the same kernel
beside the CUDA variants.
"""

import math
import sys
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

FEATURES = 64


@triton.jit
def attention_triton(
    q,
    k,
    v,
    out,
    SEQUENCE: tl.constexpr,
    D: tl.constexpr,
    SCALE: tl.constexpr,  # of a score, as an exponent of 2
    QUERIES: tl.constexpr,  # of a program
    KEYS: tl.constexpr,  # of a step
    # 0: a plain launch. Else a dependent one, which may start before the kernel before has ended,
    # and lets the kernel after start 1: at once, 2: when this one has little left to do.
    DEPENDENT: tl.constexpr,
):
    """Computes QUERIES rows of one head, with a running maximum. Q, K and V are read by tensor
    descriptors (bulk tensor copies)."""
    if DEPENDENT == 1:
        tl.extra.cuda.gdc_launch_dependents()
    if DEPENDENT > 0:
        tl.extra.cuda.gdc_wait()
    row = tl.program_id(0) * QUERIES
    first_key = row // SEQUENCE * SEQUENCE
    queries = q.load([row, 0])
    top = tl.full((QUERIES,), -float("inf"), tl.float32)
    total = tl.zeros((QUERIES,), tl.float32)
    sums = tl.zeros((QUERIES, D), tl.float32)
    for start in range(0, SEQUENCE, KEYS):
        scores = tl.dot(queries, k.load([first_key + start, 0]).T)
        new_top = tl.maximum(top, tl.max(scores, 1) * SCALE)
        weights = tl.exp2(scores * SCALE - new_top[:, None])
        rescale = tl.exp2(top - new_top)
        total = total * rescale + tl.sum(weights, 1)
        sums = sums * rescale[:, None]
        sums = tl.dot(weights.to(tl.float16), v.load([first_key + start, 0]), sums)
        top = new_top
    if DEPENDENT == 2:
        tl.extra.cuda.gdc_launch_dependents()
    rows = (row + tl.arange(0, QUERIES))[:, None]
    result = (sums / total[:, None]).to(tl.float16)
    tl.store(out + rows * D + tl.arange(0, D)[None, :], result)


@dataclass(frozen=True)
class Choice:
    """One configuration of the kernel."""

    queries: int
    keys: int
    num_warps: int
    num_stages: int


# Found with ci/compare-peers.sh --sweep on an H200, 2026-11-26, PyTorch 2.11 and Triton 3.6.
FASTEST = Choice(queries=64, keys=128, num_warps=4, num_stages=3)


@dataclass(frozen=True)
class Tensors:
    """The operands of one problem, each [heads of the batch * sequence, 64] fp16."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    out: torch.Tensor
    sequence: int


def launch(t: Tensors, choice: Choice, warmup: bool = False, dependent: int = 0) -> None:
    """Launches the kernel, or only compiles it. `dependent`: DEPENDENT of the kernel."""
    grid = (t.q.shape[0] // choice.queries,)
    scale = math.log2(math.e) / math.sqrt(FEATURES)
    arguments = (
        TensorDescriptor.from_tensor(t.q, [choice.queries, FEATURES]),
        TensorDescriptor.from_tensor(t.k, [choice.keys, FEATURES]),
        TensorDescriptor.from_tensor(t.v, [choice.keys, FEATURES]),
        t.out,
        *(t.sequence, FEATURES, scale, choice.queries, choice.keys, dependent),
    )
    options = {
        "num_warps": choice.num_warps,
        "num_stages": choice.num_stages,
        "launch_pdl": dependent > 0,
    }
    if warmup:
        attention_triton.warmup(*arguments, grid=grid, **options)
    else:
        attention_triton[grid](*arguments, **options)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
    import triton_program as program

    def require(sizes: Namespace) -> None:
        if sizes.features != FEATURES:
            raise program.RefusedError(f"--features {sizes.features} is not {FEATURES}")
        unit = math.lcm(FASTEST.queries, FASTEST.keys)
        if sizes.sequence % unit != 0:
            raise program.RefusedError(f"--sequence {sizes.sequence} is not a multiple of {unit}")
        if sizes.batch * sizes.heads * sizes.sequence * FEATURES >= 2**31:
            raise program.RefusedError("the output has 2^31 elements or more")

    class Attention:
        tolerance = (
            "to first order in each rounding of scores, weights (fp16), sums and output (fp16), "
            "for each element: mostly 2^-11 * (sum|p*v| + |out|)"
        )

        def __init__(self, sizes: Namespace) -> None:
            rows = sizes.batch * sizes.heads * sizes.sequence
            q, k, v = (
                program.normal(
                    program.stream_key(sizes.value_seed, i) >> 1,
                    (rows, FEATURES),
                    1.0,
                    torch.float16,
                )
                for i in (1, 2, 3)
            )
            self.tensors = Tensors(q, k, v, torch.empty_like(q), sizes.sequence)
            self.flop = 4 * q.numel() * sizes.sequence
            self.bytes = 4 * q.nbytes

        def poison(self) -> None:
            self.tensors.out.fill_(torch.nan)

        def launch(self) -> None:
            launch(self.tensors, FASTEST)

        def differences(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
            """64 queries after others in float64, with the bound that
            kernels/attention/reference.cuh derives."""
            t = self.tensors
            keys = t.sequence
            scale = FEATURES**-0.5
            for first in range(0, t.q.shape[0], 64):
                head = slice(first // keys * keys, first // keys * keys + keys)
                q = t.q[first : first + 64].double()
                k, v = t.k[head].double(), t.v[head].double()
                scores = q @ k.T
                magnitudes = q.abs() @ k.abs().T
                p = torch.softmax(scores * scale, 1)
                top = scores.max(1, keepdim=True).values
                errors = p * scale * (FEATURES * 2.0**-23 * magnitudes + 2.0**-22 * scores.abs())
                expected = p @ v
                spread = p @ v.abs()
                every = (keys // 16 + 2) * 2.0**-21 + 2.0**-22 * top.abs() * scale
                weights = errors @ v.abs() + every * spread
                weights += expected.abs() * (errors.sum(1, keepdim=True) + every)
                # The sum of the weights, where the largest is 1.
                total = torch.exp((scores - top) * scale).sum(1, keepdim=True)
                rounded = 2.0**-11 * spread + 2.0**-25 * v.abs().sum(0) / total
                sums = keys * 2.0**-23 * (spread + expected.abs())
                last = 2.0**-21 * spread + 2.0**-11 * expected.abs() + 2.0**-25
                got = t.out[first : first + 64].double()
                yield (got - expected).abs(), 1.01 * (weights + rounded + sums + last)

    sys.exit(
        program.run(
            "attention_triton",
            "Attention in Triton.",
            {"batch": 2, "heads": 8, "sequence": 512, "features": 64},
            require,
            Attention,
        )
    )
