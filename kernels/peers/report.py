"""The results: a table for people, JSON for programs."""

import json
import os
import platform
import subprocess
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import torch
import triton

from contest import ROUNDS, SINGLE_LAUNCHES, SLICE_US, Contest, Outcome
from targets import Target

METHOD = (
    "Before the timing, every whole output, of plain launches and of the timed graph, is compared "
    "with a reference in double precision. graph_us: launches are captured one after another into "
    "one CUDA graph; the time of a replay is divided by the number of launches. A replay lasts "
    f"some {SLICE_US // 1000} ms and follows a pause of some 10 ms. Each of {ROUNDS} rounds "
    "replays every contestant once, in a random order. dependent: a launch may start before the "
    "previous one has ended, and itself waits for its results (programmatic dependent launch). "
    f"single_us: events around each of {SINGLE_LAUNCHES} launches outside of a graph, each "
    "after a pause of some 2 ms. Successive launches use the sets of inputs in turn; with one set, "
    "L2 contains data of the launch before."
)


@dataclass(frozen=True)
class Report:
    """One contest and its results."""

    contest: Contest
    outcomes: list[Outcome]
    targets: list[Target]

    @property
    def right(self) -> bool:
        return all(outcome.right for outcome in self.outcomes)

    @property
    def best_us(self) -> float | None:
        """The fastest of ours, with plain or with dependent launches."""
        return min(
            (o.median_us for o in self.outcomes if o.right and o.contestant.ours), default=None
        )


def machine() -> dict[str, Any]:
    gpu = torch.cuda.get_device_properties(0)
    return {
        "gpu": gpu.name,
        "multiprocessors": gpu.multi_processor_count,
        "l2_bytes": gpu.L2_cache_size,
        "memory_bytes": gpu.total_memory,
        "driver": driver(),
        "cores": os.cpu_count(),
    }


def driver() -> str | None:
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", "--id=0"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def versions() -> dict[str, str | None]:
    cudnn = torch.backends.cudnn.version()
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "cuda": torch.version.cuda,
        "cudnn": None if cudnn is None else str(cudnn),
    }


def title() -> str:
    versions_of, here = versions(), machine()
    return (
        f"{here['gpu']}, driver {here['driver']}, {datetime.now(timezone.utc):%Y-%m-%d}, CUDA "
        f"{versions_of['cuda']}, PyTorch {versions_of['torch']}, Triton {versions_of['triton']}"
    )


def table(report: Report) -> str:
    """The table of one contest, with aligned columns."""
    contest = report.contest
    sizes = ", ".join(f"{name} {value}" for name, value in contest.sizes.items())
    sets = "1 set" if contest.sets == 1 else f"{contest.sets} sets"
    head = ("", "", "us", "min", "max", "single us", "TFLOP/s", "TB/s", "/ ours")
    rows = [head] + [row(outcome, report.best_us) for outcome in report.outcomes]
    widths = [max(len(cells[i]) for cells in rows) for i in range(len(head))]
    lines = [
        "  ".join(
            cell.ljust(width) if i < 2 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ).rstrip()
        for cells in rows
    ]
    notes = [
        f"{outcome.contestant.name}: {outcome.contestant.configuration}"
        for outcome in report.outcomes
        if outcome.contestant.configuration and not outcome.contestant.dependent
    ]
    failures = [
        f"{outcome.contestant.title}: {failure(outcome)}"
        for outcome in report.outcomes
        if not outcome.right
    ]
    bounds = [
        f"{'met   ' if target.met else 'MISSED'}  {target.name}: {number(target.value)}, "
        f"{'below' if target.strict else 'at most'} {number(target.limit)}"
        for target in report.targets
    ]
    title_line = f"{contest.family.name}: {sizes} ({sets} of inputs)"
    return "\n".join([title_line, *lines, *notes, *failures, *bounds])


def row(outcome: Outcome, best_us: float | None) -> tuple[str, ...]:
    contestant = outcome.contestant
    kind = "floor" if contestant.floor else "ours" if contestant.ours else "peer"
    who = (kind, contestant.title)
    if not outcome.right:
        return (*who, "-", "-", "-", "-", "-", "-", "WRONG" if outcome.checks else "FAILED")
    time_us = outcome.median_us
    single_us = sorted(outcome.single_us)[len(outcome.single_us) // 2]
    return (
        *who,
        f"{time_us:.2f}",
        f"{min(outcome.graph_us):.2f}",
        f"{max(outcome.graph_us):.2f}",
        f"{single_us:.2f}",
        f"{contestant.flop / time_us * 1e-6:.1f}",
        f"{contestant.bytes / time_us * 1e-6:.2f}",
        "-" if best_us is None else f"{time_us / best_us:.2f}",
    )


def failure(outcome: Outcome) -> str:
    if outcome.error:
        return outcome.error.splitlines()[0]
    wrong = sum(check.wrong for check in outcome.checks)
    worst = max(check.max_error_over_tolerance for check in outcome.checks)
    return f"{wrong} elements are wrong, up to {worst:.3g} times the tolerance"


def number(value: float | None) -> str:
    return "no time" if value is None else f"{value:.3f}"


def as_json(reports: list[Report]) -> dict[str, Any]:
    return {
        "schema": 2,
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": versions(),
        "method": METHOD,
        "right": all(report.right for report in reports),
        "contests": [contest_as_json(report) for report in reports],
    }


def contest_as_json(report: Report) -> dict[str, Any]:
    return {
        "family": report.contest.family.name,
        "sizes": report.contest.sizes,
        "sets": report.contest.sets,
        "contestants": [outcome_as_json(outcome, report.best_us) for outcome in report.outcomes],
        "targets": [{**asdict(target), "met": target.met} for target in report.targets],
    }


def outcome_as_json(outcome: Outcome, best_us: float | None) -> dict[str, Any]:
    contestant = outcome.contestant
    median_us = outcome.median_us if outcome.right else None
    return {
        "name": contestant.name,
        "ours": contestant.ours,
        "floor": contestant.floor,
        "dependent": contestant.dependent,
        "configuration": contestant.configuration or None,
        "right": outcome.right,
        "error": outcome.error or None,
        "checks": [asdict(check) for check in outcome.checks],
        "flop": contestant.flop,
        "bytes": contestant.bytes,
        "median_us": median_us,
        "over_best_of_ours": median_us / best_us if median_us and best_us else None,
        "launches_in_graph": outcome.launches,
        "graph_us": outcome.graph_us,
        "single_us": outcome.single_us,
    }


def write(path: Path, reports: list[Report]) -> None:
    """Writes beside the target and renames: a reader sees the whole file or none."""
    partial = path.with_name(path.name + ".partial")
    # A number that JSON does not support (the error of a wrong output) becomes null.
    partial.write_text(json.dumps(finite(as_json(reports)), indent=1) + "\n")
    partial.replace(path)


def finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [finite(item) for item in value]
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None
    return value
