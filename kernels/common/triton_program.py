"""What the Triton programs share with the CUDA variants: the command line, the exit statuses, the
result file (kernels/README.md) and the structure of the inputs.

The structure (columns of blocks, times) is the same as in the CUDA variants, bit for bit. The
values have the same distribution, from torch's generator.
"""

import argparse
import json
import math
import os
import statistics
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

OK, WRONG_NUMBERS, USAGE, NO_DEVICE, CUDA_ERROR, RESULT_UNWRITTEN = range(6)
MOST_SEED = 2**63 - 1

try:
    import torch
except ImportError as error:
    print(f"error: {error}: install PyTorch 2.11 and Triton 3.6", file=sys.stderr)
    sys.exit(USAGE)


@dataclass(frozen=True)
class Check:
    """How one whole output compares with its reference."""

    checked: int
    wrong: int  # outside the tolerance, or NaN
    max_abs_error: float
    max_error_over_tolerance: float


class Problem(Protocol):
    """Inputs and output in device memory."""

    flop: int  # of one launch
    bytes: int  # inputs read once, the output written once
    tolerance: str  # in words

    def poison(self) -> None:
        """Fills the output with NaN."""

    def launch(self) -> None: ...

    def differences(self) -> Iterable[tuple[torch.Tensor, torch.Tensor]]:
        """Errors and tolerances of all elements in float64, part by part."""


class RefusedError(Exception):
    """Sizes that the kernel does not compute."""


def compare(differences: Iterable[tuple[torch.Tensor, torch.Tensor]]) -> Check:
    """All parts together. NaN is wrong, and infinitely so."""
    checked, wrong, largest, over = 0, 0, 0.0, 0.0
    for error, tolerance in differences:
        checked += error.numel()
        wrong += int((~(error <= tolerance)).sum())
        error = error.nan_to_num(nan=math.inf, posinf=math.inf)
        ratio = torch.where(error == 0, 0.0, error / tolerance)
        ratio = ratio.nan_to_num(nan=math.inf, posinf=math.inf)
        largest = max(largest, error.max().item())
        over = max(over, ratio.max().item())
    return Check(checked, wrong, largest, over)


def parse(description: str, sizes: dict[str, int]) -> argparse.Namespace:
    def number(lowest: int, highest: int = MOST_SEED) -> Callable[[str], int]:
        def parsed(text: str) -> int:
            if not lowest <= int(text) <= highest:
                raise argparse.ArgumentTypeError(f"{text} is outside {lowest} to {highest}")
            return int(text)

        return parsed

    parser = argparse.ArgumentParser(
        description=description,
        epilog="exit status: 0 right; 1 wrong numbers; 2 bad argument or size; 3 no usable GPU; "
        "4 CUDA error; 5 result file not written",
        allow_abbrev=False,
    )
    parser.add_argument("--mode", choices=("check", "profile", "time"), default="time")
    parser.add_argument("--launches", type=number(1, 1_000_000), default=20)
    parser.add_argument("--warmup", type=number(0, 1_000_000))
    parser.add_argument("--seed", type=number(0), default=1)
    parser.add_argument("--value-seed", type=number(0), help="default: that of --seed")
    parser.add_argument("--result", metavar="FILE", help="write the outcome as JSON")
    for name, default in sizes.items():
        parser.add_argument(f"--{name}", type=number(1, 2**24), default=default)
    options = parser.parse_args()
    if options.mode == "profile" and options.warmup:
        parser.error("--mode profile makes no warm-up launches")
    if options.warmup is None:
        options.warmup = 2
    if options.value_seed is None:
        options.value_seed = options.seed
    return options


def run(
    kernel: str,
    description: str,
    sizes: dict[str, int],
    require: Callable[[argparse.Namespace], None],
    create: Callable[[argparse.Namespace], Problem],
) -> int:
    """The main of every program. Returns the exit status."""
    options = parse(description, sizes)
    if options.result:
        # An earlier run's file must not be taken for this run's.
        Path(options.result).unlink(missing_ok=True)
    try:
        require(options)
    except RefusedError as refused:
        print(f"error: {refused}", file=sys.stderr)
        return USAGE
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0):
        print("error: no GPU of compute capability 9.0", file=sys.stderr)
        return NO_DEVICE
    try:
        with torch.inference_mode():
            return measured(kernel, options, create(options))
    except Exception as error:  # torch and Triton raise many types for a failed call
        print(f"error: {type(error).__name__}: {error}", file=sys.stderr)
        return CUDA_ERROR


def measured(kernel: str, options: argparse.Namespace, problem: Problem) -> int:
    check: Check | None = None
    launches, times = 0, []
    if options.mode == "profile":
        # What is measured is checked: the output of the last launch, in the same process.
        if options.result:
            problem.poison()
        launches = options.launches
        for _ in range(launches):
            problem.launch()
        torch.cuda.synchronize()
    else:
        problem.poison()
        problem.launch()
        torch.cuda.synchronize()
    if options.mode != "profile" or options.result:
        check = compare(problem.differences())
        print(f"check: {check.wrong} of {check.checked} elements outside the tolerance")
        print(f"largest error over tolerance {check.max_error_over_tolerance:.3g}")
    correct = None if check is None else check.wrong == 0
    if options.mode == "time" and correct:
        launches = options.launches
        times = time_launches_us(problem, options.warmup, launches)
        print(f"time: median {statistics.median(times):.2f} us of {launches} launches")
    if options.result:
        empty = dict.fromkeys(Check.__dataclass_fields__)
        result = {
            "schema": 1,
            "kernel": kernel,
            "gpu": torch.cuda.get_device_name(),
            "correct": correct,
            **(empty if check is None else asdict(check)),
            "tolerance": problem.tolerance,
            "flop": problem.flop,
            "bytes": problem.bytes,
            "launches": launches,
            "times_us": times,
            "median_us": statistics.median(times) if times else None,
        }
        if not write(options.result, result):
            return RESULT_UNWRITTEN
    return WRONG_NUMBERS if correct is False else OK


def write(path: str, result: dict[str, object]) -> bool:
    """Writes beside the target and renames: a reader sees the whole file or none."""
    for name, value in result.items():
        if isinstance(value, float) and not math.isfinite(value):
            result[name] = None
    partial = f"{path}.partial.{os.getpid()}"
    try:
        Path(partial).write_text(json.dumps(result, indent=2) + "\n")
        Path(partial).replace(path)
    except OSError as error:
        print(f"cannot write the result file {path}: {error}", file=sys.stderr)
        Path(partial).unlink(missing_ok=True)
        return False
    return True


def time_launches_us(problem: Problem, warmup: int, launches: int) -> list[float]:
    """The time of each launch between two events; L2 as the launch before left it."""
    pairs = [
        (torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
        for _ in range(launches)
    ]
    for _ in range(warmup):
        problem.launch()
    for start, stop in pairs:
        start.record()
        problem.launch()
        stop.record()
    torch.cuda.synchronize()
    return [start.elapsed_time(stop) * 1e3 for start, stop in pairs]


def normal(seed: int, shape: tuple[int, ...], sigma: float, dtype: torch.dtype) -> torch.Tensor:
    generator = torch.Generator("cuda").manual_seed(seed)
    values = torch.empty(shape, device="cuda", dtype=torch.float32)
    return values.normal_(0, sigma, generator=generator).to(dtype)


# kernels/common/random.cuh, with Python's integers. random_bits with a tensor of counters is for
# many draws: int64 wraps around as uint64 does.
MASK = 2**64 - 1
STEP = 0x9E3779B97F4A7C15
FACTORS = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def mix64(z: int) -> int:
    z = (z ^ z >> 30) * FACTORS[0] & MASK
    z = (z ^ z >> 27) * FACTORS[1] & MASK
    return z ^ z >> 31


def random_bits(key: int, counter: int) -> int:
    return mix64(key + (counter + 1) * STEP & MASK)


def stream_key(seed: int, stream: int) -> int:
    return mix64(mix64(seed) + stream * 0xD1B54A32D192ED03 & MASK)


def signed(value: int) -> int:
    """The int64 with the bits of a uint64."""
    return value - 2**64 if value >= 2**63 else value


def shifted(z: torch.Tensor, count: int) -> torch.Tensor:
    """A logical shift to the right."""
    return (z >> count) & ((1 << 64 - count) - 1)


def random_bits_of(key: int, counters: torch.Tensor) -> torch.Tensor:
    z = (counters + 1) * signed(STEP) + signed(key)
    z = (z ^ shifted(z, 30)) * signed(FACTORS[0])
    z = (z ^ shifted(z, 27)) * signed(FACTORS[1])
    return z ^ shifted(z, 31)


def uniform_of(key: int, counters: torch.Tensor) -> torch.Tensor:
    return shifted(random_bits_of(key, counters), 11).double() * 2.0**-53
