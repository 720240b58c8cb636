"""The peers of trajectory_resample: Triton and torch.compile."""

import ctypes
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
import triton
import triton.language as tl

from binding import Inputs, Variant, tensor
from contest import Contest, Contestant, on_inputs, variants
from families import Family, Sizes
from sweep import fastest

# Successive launches use different inputs, enough of them that none is still in L2.
FEWEST_SETS = 4
L2_TURNS = 4  # all sets together are at least this many times as large as L2


class Operands(ctypes.Structure):
    """`sparsek::Operands` of kernels/trajectory_resample/reference.cuh."""

    _fields_ = [
        ("source", ctypes.c_void_p),
        ("source_times", ctypes.c_void_p),
        ("target_times", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("batch", ctypes.c_int),
        ("steps", ctypes.c_int),
        ("targets", ctypes.c_int),
        ("features", ctypes.c_int),
    ]


@dataclass(frozen=True)
class Tensors:
    """The operands of one problem."""

    source: torch.Tensor  # [batch, steps, features] bf16
    source_times: torch.Tensor  # [batch, steps] fp32, never decreasing
    target_times: torch.Tensor  # [batch, targets] fp32
    out: torch.Tensor  # [batch, targets, features] bf16

    @staticmethod
    def of(inputs: Inputs) -> "Tensors":
        p = inputs.operands
        return Tensors(
            tensor(p.source, (p.batch, p.steps, p.features), torch.bfloat16),
            tensor(p.source_times, (p.batch, p.steps), torch.float32),
            tensor(p.target_times, (p.batch, p.targets), torch.float32),
            tensor(p.out, (p.batch, p.targets, p.features), torch.bfloat16),
        )

    @staticmethod
    def empty(sizes: Sizes) -> "Tensors":
        """Tensors without data, to compile for these sizes."""
        batch, steps, targets = sizes["batch"], sizes["steps"], sizes["targets"]

        def make(*shape: int, dtype: torch.dtype) -> torch.Tensor:
            return torch.empty(shape, dtype=dtype, device="cuda")

        return Tensors(
            make(batch, steps, sizes["features"], dtype=torch.bfloat16),
            make(batch, steps, dtype=torch.float32),
            make(batch, targets, dtype=torch.float32),
            make(batch, targets, sizes["features"], dtype=torch.bfloat16),
        )


@triton.jit
def trajectory_resample(
    source,
    source_times,
    target_times,
    out,
    STEPS: tl.constexpr,
    TARGETS: tl.constexpr,
    FEATURES: tl.constexpr,
    ROWS: tl.constexpr,  # targets of a program
):
    """Computes ROWS targets of one trajectory."""
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
    tl.store(out + targets[:, None] * FEATURES + features, result.to(tl.bfloat16))


@dataclass(frozen=True)
class Choice:
    """One configuration of the Triton kernel."""

    rows: int
    num_warps: int


# Found with --sweep on an H200, 2026-11-21, PyTorch 2.11 and Triton 3.6, by (batch, steps, targets,
# features). Not offered, because they were slower: halving the interval, and half of a row for a
# program. Not faster: streaming stores.
FASTEST: dict[tuple[int, ...], Choice] = {
    (32, 500, 256, 256): Choice(rows=2, num_warps=1),
    (64, 1000, 512, 512): Choice(rows=2, num_warps=1),
    (256, 100, 2048, 256): Choice(rows=8, num_warps=1),
}


def choices(sizes: Sizes) -> list[Choice]:
    """The configurations with 8 to 64 values for each thread, and at most 64 times to compare."""
    found = []
    padded_steps = triton.next_power_of_2(sizes["steps"])
    for rows, num_warps in itertools.product((1, 2, 4, 8, 16, 32, 64), (1, 2, 4, 8)):
        threads = 32 * num_warps
        values = rows * sizes["features"] / threads
        if 8 <= values <= 64 and rows * padded_steps / threads <= 64:
            found.append(Choice(rows, num_warps))
    return found


def launch(t: Tensors, choice: Choice, warmup: bool = False) -> None:
    """Launches the Triton kernel, or only compiles it."""
    batch, steps, features = t.source.shape
    targets = t.out.shape[1]
    grid = (batch * targets // choice.rows,)
    arguments = (
        *(t.source, t.source_times, t.target_times, t.out),
        *(steps, targets, features, choice.rows),
    )
    if warmup:
        trajectory_resample.warmup(*arguments, grid=grid, num_warps=choice.num_warps)
    else:
        trajectory_resample[grid](*arguments, num_warps=choice.num_warps)


def compile_choice(sizes: Sizes, choice: Choice) -> None:
    launch(Tensors.empty(sizes), choice, warmup=True)


def compile_jobs(sizes: Sizes) -> list[Callable[[], None]]:
    return [partial(compile_choice, sizes, choice) for choice in choices(sizes)]


def in_torch(
    source: torch.Tensor,
    source_times: torch.Tensor,
    target_times: torch.Tensor,
    out: torch.Tensor,
) -> None:
    """The same with operations of torch, for torch.compile to fuse."""
    steps, features = source.shape[1:]
    not_later = torch.searchsorted(source_times, target_times, right=True)
    left = (not_later - 1).clamp(min=0)
    right = not_later.clamp(max=steps - 1)
    t0 = source_times.gather(1, left)
    t1 = source_times.gather(1, right)
    weight = torch.where(t1 > t0, (target_times - t0) / (t1 - t0), 0.0)
    a = source.gather(1, left[:, :, None].expand(-1, -1, features)).float()
    b = source.gather(1, right[:, :, None].expand(-1, -1, features)).float()
    out.copy_(torch.lerp(a, b, weight[:, :, None]))


def contest(family: Family, sizes: Sizes, ours: Sequence[Variant], sweep: bool) -> Contest:
    inputs = [Inputs(ours[0], Operands, sizes, seed=1)]
    l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size
    sets = max(FEWEST_SETS, -(-L2_TURNS * l2_bytes // inputs[0].bytes))
    inputs += [Inputs(ours[0], Operands, sizes, seed) for seed in range(2, sets + 1)]
    tensors = [Tensors.of(one) for one in inputs]

    def in_triton(choice: Choice) -> Contestant:
        return on_inputs(
            "Triton",
            inputs,
            lambda number: launch(tensors[number], choice),
            configuration=str(choice),
        )

    choice = fastest(choices(sizes), in_triton, sets) if sweep else FASTEST[tuple(sizes.values())]
    compiled = torch.compile(in_torch, dynamic=False)

    def launch_compiled(number: int) -> None:
        t = tensors[number]
        compiled(t.source, t.source_times, t.target_times, t.out)

    return Contest(
        family,
        sizes,
        sets,
        [
            *variants(ours, inputs),
            in_triton(choice),
            on_inputs("torch.compile", inputs, launch_compiled),
        ],
    )
