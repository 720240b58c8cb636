"""Fills docs/ladder.md: times and counters from the records, and the lines that matter from the
kernels.

    python3 kernels/peers/ladder.py            writes the page
    python3 kernels/peers/ladder.py --check    fails if the page differs from records and sources

The page has blocks that begin with one of these comments and end with <!-- /NAME -->:

    <!-- steps: FAMILY -->                     the table of all rungs
    <!-- lines: FAMILY/RUNG | FIRST | LAST --> its lines from one that begins with FIRST to the next
                                               that begins with LAST
"""

import argparse
import json
import re
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import picture
from families import FAMILIES, ROOT

PAGE = ROOT / "docs/ladder.md"
RECORDINGS = ROOT / "ci/recordings"
# Of two GPUs: the locked variants, and the others, on the GPU of the contest.
COUNTERS = (RECORDINGS / "h200", RECORDINGS / "ladder/0cb32af4")
BLOCK = re.compile(r"(<!-- (steps|lines): (.*?) -->\n).*?(<!-- /\2 -->)", re.DOTALL)


class LadderError(Exception):
    """The page asks for something that the records or the sources do not have."""


@dataclass(frozen=True)
class Rung:
    """A variant: its time in the contest, and what ncu counted."""

    name: str
    us: float
    registers: int
    tensor_core: float  # percent of the peak
    dram_bw: float  # percent of the peak
    conflicts: float  # bank conflicts in shared memory of a launch


def rungs(family: str) -> list[Rung]:
    record = picture.read(picture.RECORD)
    problem = next(one for one in record.problems if one.family.name == family)
    return [rung(family, entry.name, entry.us) for entry in problem.ours]


def rung(family: str, name: str, us: float) -> Rung:
    folders = [folder / family / name for folder in COUNTERS]
    folder = next((folder for folder in folders if folder.is_dir()), None)
    if folder is None:
        raise LadderError(f"no folder of {family}/{name} in {' or '.join(map(str, COUNTERS))}")
    counted = kernel(folder / "profile.json")
    registers = kernel(folder / "static.json")["metrics"]["registers"]["value"]
    return Rung(
        name,
        us,
        int(registers),
        *(value(counted, metric) for metric in ("tensor_core", "dram_bw", "bank_conflicts")),
    )


def kernel(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())["kernels"][0]


def value(kernel: dict[str, Any], metric: str) -> float:
    """The median over all launches."""
    processes = kernel["metrics"][metric]["samples"]
    return statistics.median(launch for process in processes for launch in process)


def find(all_rungs: list[Rung], name: str) -> Rung:
    found = next((one for one in all_rungs if one.name == name), None)
    if found is None:
        raise LadderError(f"no rung `{name}`; there are {', '.join(r.name for r in all_rungs)}")
    return found


def steps(family: str) -> str:
    """The table of a ladder."""
    all_rungs = rungs(family)
    order = next(one for one in FAMILIES if one.name == family)
    lines = [
        "| rung | us | against | change | tensor cores | DRAM | bank conflicts | registers |",
        "|---|--:|---|--:|--:|--:|--:|--:|",
    ]
    for one in all_rungs:
        before = order.before(one.name)
        other = None if before is None else find(all_rungs, before)
        against = "" if other is None else f"`{other.name}`"
        change = "" if other is None else percent(one.us / other.us)
        lines.append(
            f"| [`{one.name}`](../kernels/{family}/{one.name}.cu) | {picture.time(one.us)} | "
            f"{against} | {change} | {one.tensor_core:.0f} % | {one.dram_bw:.0f} % | "
            f"{thousands(one.conflicts)} | {one.registers} |"
        )
    return "\n".join(lines)


def percent(ratio: float) -> str:
    return f"{(ratio - 1) * 100:+.1f} %".replace("-", "\N{MINUS SIGN}")


def thousands(count: float) -> str:
    return f"{count / 1000:,.0f} k" if count >= 500 else f"{count:.0f}"


def excerpt(text: str) -> str:
    """Lines of a kernel."""
    parts = [part.strip() for part in text.split(" | ")]
    if len(parts) != 3:
        raise LadderError(f"`{text}` is not FAMILY/RUNG | FIRST | LAST")
    variant, first, last = parts
    source = ROOT / "kernels" / f"{variant}.cu"
    lines = source.read_text().splitlines()
    begins = [at for at, line in enumerate(lines) if line.strip().startswith(first)]
    if len(begins) != 1:
        raise LadderError(f"{len(begins)} lines of {source} begin with `{first}`, and not one")
    rest = range(begins[0] + (first != last), len(lines))
    end = next((at for at in rest if lines[at].strip().startswith(last)), None)
    if end is None:
        raise LadderError(f"no line of {source} after `{first}` begins with `{last}`")
    shown = lines[begins[0] : end + 1]
    # Directives stand at the start of a line wherever they are.
    indents = [len(line) - len(line.lstrip()) for line in shown if line and line[0] != "#"]
    shown = [line if line[:1] == "#" else line[min(indents) :] for line in shown]
    return "\n".join(["```cuda", *shown, "```"])


MADE: dict[str, Callable[[str], str]] = {
    "steps": steps,
    "lines": excerpt,
}


def filled(page: str) -> str:
    def fill(block: re.Match[str]) -> str:
        begin, kind, text, end = block.groups()
        return f"{begin}{MADE[kind](text)}\n{end}"

    known = {f"{family.name}/{variant}" for family in FAMILIES for variant in family.variants}
    for variant in re.findall(r"<!-- lines: (\w+/\w+)", page):
        if variant not in known:
            raise LadderError(f"`{variant}` is no variant of kernels/peers/families.py")
    return BLOCK.sub(fill, page)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="kernels/peers/ladder.py",
        description=(__doc__ or "").splitlines()[0],
        epilog="exit status: 0 done, or no difference; 1 the page differs; 2 something is missing",
    )
    parser.add_argument("--check", action="store_true", help="compare the page, write nothing")
    options = parser.parse_args(arguments)
    page = PAGE.read_text()
    try:
        made = filled(page)
    except (LadderError, picture.RecordError, OSError, KeyError) as error:
        print(f"{PAGE.relative_to(ROOT)}: {error}", file=sys.stderr)
        return 2
    if options.check and made != page:
        print(
            f"{PAGE.relative_to(ROOT)} does not show the records and the kernels: to write it, run "
            "`python3 kernels/peers/ladder.py`",
            file=sys.stderr,
        )
        return 1
    if not options.check:
        PAGE.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
