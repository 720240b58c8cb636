"""The peers of trajectory_resample: Triton and torch.compile."""

import ctypes
import itertools
from collections.abc import Callable, Sequence
from functools import cache, partial

import torch
import triton
from torch import _inductor as inductor

from binding import Inputs, Variant, tensor
from contest import Contest, Contestant, on_inputs, variants
from families import Family, Sizes
from floors import Floors, Traffic
from sweep import faster, fastest
from twins import DEPENDENT, twin

TWIN = twin("trajectory_resample")
Choice, Tensors, launch = TWIN.Choice, TWIN.Tensors, TWIN.launch

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


def tensors_of(inputs: Inputs) -> Tensors:
    """The operands of one problem."""
    p = inputs.operands
    return Tensors(
        tensor(p.source, (p.batch, p.steps, p.features), torch.bfloat16),
        tensor(p.source_times, (p.batch, p.steps), torch.float32),
        tensor(p.target_times, (p.batch, p.targets), torch.float32),
        tensor(p.out, (p.batch, p.targets, p.features), torch.bfloat16),
    )


def empty_tensors(sizes: Sizes) -> Tensors:
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


def compile_choice(sizes: Sizes, choice: Choice) -> None:
    launch(empty_tensors(sizes), choice, warmup=True)


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


# Compilers' options by the name of the contestant: none, and all that search for a faster kernel.
TUNED = {"max_autotune": True, "coordinate_descent_tuning": True}
DEPENDENT_OPTION = "triton.enable_pdl"  # of newer versions


@cache
def compiled(tuned: bool, dependent: bool) -> Callable[..., None]:
    """Compiles at the first launch of each size."""
    # Each size is compiled with each of the options.
    torch._dynamo.config.recompile_limit = 64
    options = {**(TUNED if tuned else {}), **({DEPENDENT_OPTION: True} if dependent else {})}
    return torch.compile(in_torch, dynamic=False, options=options)


def needed_bytes(t: Tensors) -> int:
    """Of the rows of source that the output depends on, at least."""
    batch, steps, features = t.source.shape
    not_later = torch.searchsorted(t.source_times, t.target_times, right=True)
    needed = torch.zeros(batch, steps, device="cuda", dtype=torch.bool)
    left = (not_later - 1).clamp(min=0)
    right = torch.where(not_later == 0, 0, not_later.clamp(max=steps - 1))
    # A target at the time of a sample needs no other.
    right = torch.where(t.target_times == t.source_times.gather(1, left), left, right)
    needed.scatter_(1, left, True).scatter_(1, right, True)
    return int(needed.sum()) * features * t.source.element_size()


def contest(
    family: Family, sizes: Sizes, ours: Sequence[Variant], floors: Floors, sweep: bool
) -> Contest:
    inputs = [Inputs(ours[0], Operands, sizes, seed=1)]
    l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size
    sets = max(FEWEST_SETS, -(-L2_TURNS * l2_bytes // inputs[0].bytes))
    inputs += [Inputs(ours[0], Operands, sizes, seed) for seed in range(2, sets + 1)]
    tensors = [tensors_of(one) for one in inputs]

    def in_triton(choice: Choice, dependent: int = 0) -> Contestant:
        return on_inputs(
            "Triton",
            inputs,
            lambda number: launch(tensors[number], choice, dependent=dependent),
            configuration=f"{choice}, dependent={dependent}",
            dependent=dependent > 0,
        )

    def by_torch(tuned: bool, dependent: bool = False) -> Contestant:
        def launch_compiled(number: int) -> None:
            t = tensors[number]
            compiled(tuned, dependent)(t.source, t.source_times, t.target_times, t.out)

        name = "torch.compile, tuned" if tuned else "torch.compile"
        configuration = ", ".join(TUNED) if tuned else ""
        return on_inputs(
            name, inputs, launch_compiled, configuration=configuration, dependent=dependent
        )

    shape = tuple(sizes[name] for name in ("batch", "steps", "targets", "features"))
    choice = fastest(choices(sizes), in_triton, sets) if sweep else TWIN.FASTEST[shape]
    dependent = faster(DEPENDENT, lambda one: in_triton(choice, one), sets)
    by_compiler = [by_torch(tuned=False), by_torch(tuned=True)]
    if DEPENDENT_OPTION in inductor.list_options():
        by_compiler.append(by_torch(tuned=True, dependent=True))
    traffic = [Traffic(t.source, needed_bytes(t), t.out) for t in tensors]
    return Contest(
        family,
        sizes,
        sets,
        [
            *floors.streams(traffic),
            *variants(ours, inputs),
            in_triton(choice),
            in_triton(choice, dependent),
            *by_compiler,
        ],
    )
