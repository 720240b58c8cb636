"""The resampling of trajectories in Triton, to compare with: trajectory_resample_triton.

Its configuration is fixed, so that every process runs the same code. ci/peers times the same kernel
beside the CUDA variants.
"""

import sys
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
import triton
import triton.language as tl


@triton.jit
def trajectory_resample_triton(
    source,
    source_times,
    target_times,
    out,
    STEPS: tl.constexpr,
    TARGETS: tl.constexpr,
    FEATURES: tl.constexpr,
    ROWS: tl.constexpr,  # targets of a program
    # 0: a plain launch. Else a dependent one, which may start before the kernel before has ended,
    # and lets the kernel after start 1: at once, 2: when this one has little left to do.
    DEPENDENT: tl.constexpr,
):
    """Computes ROWS targets of one trajectory."""
    if DEPENDENT == 1:
        tl.extra.cuda.gdc_launch_dependents()
    if DEPENDENT > 0:
        tl.extra.cuda.gdc_wait()
    batch = tl.program_id(0) // (TARGETS // ROWS)
    targets = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    x = tl.load(target_times + targets)

    # Count the samples that are not later than a target, instead of a search.
    times = source_times + batch * STEPS
    steps = tl.arange(0, triton.next_power_of_2(STEPS))[None, :]
    inside = steps < STEPS
    earlier = (tl.load(times + steps, mask=inside, other=0) <= x[:, None]) & inside
    not_later = tl.sum(earlier.to(tl.int32), axis=1)

    # Outside of the samples the value is constant: both rows are the end's.
    left = tl.maximum(not_later - 1, 0)
    right = tl.minimum(not_later, STEPS - 1)
    t0 = tl.load(times + left)
    t1 = tl.load(times + right)
    weight = tl.where(t1 > t0, (x - t0) / (t1 - t0), 0.0)

    features = tl.arange(0, FEATURES)[None, :]
    rows = source + batch * STEPS * FEATURES + features
    a = tl.load(rows + left[:, None] * FEATURES).to(tl.float32)
    b = tl.load(rows + right[:, None] * FEATURES).to(tl.float32)
    result = a + weight[:, None] * (b - a)
    if DEPENDENT == 2:
        tl.extra.cuda.gdc_launch_dependents()
    tl.store(out + targets[:, None] * FEATURES + features, result.to(tl.bfloat16))


@dataclass(frozen=True)
class Choice:
    """One configuration of the kernel."""

    rows: int
    num_warps: int


# Found with ci/compare-peers.sh --sweep on an H200, 2026-11-21, PyTorch 2.11 and Triton 3.6, by
# (batch, steps, targets, features). Not offered there, because they were slower: halving the
# interval, and half of a row for a program. Not faster: streaming stores.
FASTEST: dict[tuple[int, ...], Choice] = {
    (32, 500, 256, 256): Choice(rows=2, num_warps=1),
    (64, 1000, 512, 512): Choice(rows=2, num_warps=1),
    (256, 100, 2048, 256): Choice(rows=8, num_warps=1),
}


@dataclass(frozen=True)
class Tensors:
    """The operands of one problem."""

    source: torch.Tensor  # [batch, steps, features] bf16
    source_times: torch.Tensor  # [batch, steps] fp32, never decreasing
    target_times: torch.Tensor  # [batch, targets] fp32
    out: torch.Tensor  # [batch, targets, features] bf16


def launch(t: Tensors, choice: Choice, warmup: bool = False, dependent: int = 0) -> None:
    """Launches the kernel, or only compiles it. `dependent`: DEPENDENT of the kernel."""
    batch, steps, features = t.source.shape
    targets = t.out.shape[1]
    grid = (batch * targets // choice.rows,)
    arguments = (
        *(t.source, t.source_times, t.target_times, t.out),
        *(steps, targets, features, choice.rows, dependent),
    )
    options = {"num_warps": choice.num_warps, "launch_pdl": dependent > 0}
    if warmup:
        trajectory_resample_triton.warmup(*arguments, grid=grid, **options)
    else:
        trajectory_resample_triton[grid](*arguments, **options)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
    import triton_program as program

    def require(sizes: Namespace) -> None:
        features = sizes.features
        if features & features - 1 != 0 or features > 2**13:
            raise program.RefusedError(f"--features {features} is not a power of 2 up to 8192")
        if sizes.steps > 2**13:
            raise program.RefusedError("--steps is more than 8192: each target reads all times")
        if sizes.batch * max(sizes.steps, sizes.targets) * features >= 2**31:
            raise program.RefusedError("source or output has 2^31 elements or more")

    def draw_source_times(sizes: Namespace) -> torch.Tensor:
        """As kernels/trajectory_resample/problem.cuh with regular times."""
        key = program.stream_key(sizes.seed, 0)
        draws = torch.arange(sizes.batch * sizes.steps)
        steps = draws % sizes.steps
        times = (steps.double() + 0.3 * program.uniform_of(key, 2 * draws + 1)).float()
        repeated = program.shifted(program.random_bits_of(key, 2 * draws), 57) == 0
        for i in torch.nonzero(repeated & (steps > 0)).flatten().tolist():
            times[i] = times[i - 1]
        return times.view(sizes.batch, sizes.steps)

    def draw_target_times(sizes: Namespace) -> torch.Tensor:
        key = program.stream_key(sizes.seed, 1)
        draws = torch.arange(sizes.batch * sizes.targets)
        place = (draws % sizes.targets).double() + 0.45 + 0.1 * program.uniform_of(key, 2 * draws)
        spacing = (sizes.steps + 1) / sizes.targets
        return (place * spacing - 1.0).float().view(sizes.batch, sizes.targets)

    class Resampling:
        tolerance = (
            "|got - expected| <= E + half the bf16 spacing at |expected| + E, "
            "E = 2^-21 (|a| + |b|), a and b the values on either side"
        )

        def __init__(self, sizes: Namespace) -> None:
            batch, targets, features = sizes.batch, sizes.targets, sizes.features
            key = program.stream_key(sizes.value_seed, 2) >> 1
            shape = (batch, sizes.steps, features)
            self.tensors = t = Tensors(
                program.normal(key, shape, 1.0, torch.bfloat16),
                draw_source_times(sizes).cuda(),
                draw_target_times(sizes).cuda(),
                torch.empty(batch, targets, features, device="cuda", dtype=torch.bfloat16),
            )
            known = FASTEST.get((batch, sizes.steps, targets, features))
            self.choice = known or Choice(rows=1, num_warps=4)
            self.flop = 3 * t.out.numel()
            self.bytes = sum(x.nbytes for x in (t.source, t.source_times, t.target_times, t.out))

        def poison(self) -> None:
            self.tensors.out.fill_(torch.nan)

        def launch(self) -> None:
            launch(self.tensors, self.choice)

        def differences(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
            """One trajectory after another in float64, with torch's search."""
            t = self.tensors
            steps = t.source.shape[1]
            for source, times, x, got in zip(
                t.source,
                t.source_times.double(),
                t.target_times.double(),
                t.out,
                strict=True,
            ):
                not_later = torch.searchsorted(times, x, right=True)
                left = (not_later - 1).clamp(min=0)
                right = torch.where(not_later == 0, 0, not_later.clamp(max=steps - 1))
                gap = times[right] - times[left]
                weight = torch.where(left < right, (x - times[left]) / gap, 0.0)[:, None]
                a, b = source[left].double(), source[right].double()
                expected = a + weight * (b - a)
                arithmetic = 2.0**-21 * (a.abs() + b.abs())
                largest = expected.abs() + arithmetic
                # frexp gives a fraction from 0.5 on: its exponent is one more than ilogb's.
                exponent = (torch.frexp(largest).exponent - 1).clamp(min=-126)
                exponent = torch.where(largest == 0, -126, exponent)
                half_spacing = torch.exp2((exponent - 8).double())
                yield (got.double() - expected).abs(), arithmetic + half_spacing

    sys.exit(
        program.run(
            "trajectory_resample_triton",
            "Resampling of trajectories in Triton.",
            {"batch": 64, "steps": 1000, "targets": 512, "features": 512},
            require,
            Resampling,
        )
    )
