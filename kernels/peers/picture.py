"""Shows the shipped kernels with their floor and their peers, as kernels/peers/run.sh measured them.

    python3 kernels/peers/picture.py            writes the table in docs/kernels.md, and docs/kernels.svg
    python3 kernels/peers/picture.py --check    fails if the table differs from the record

The picture needs matplotlib; the table needs nothing.
"""

import argparse
import io
import json
import math
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from families import FAMILIES, ROOT, Family

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RECORD = ROOT / "kernels/peers/h200.json"
PAGE = ROOT / "docs/kernels.md"
PICTURE = ROOT / "docs/kernels.svg"
ALTERNATIVE = "Bars: the time of every variant and peer as a multiple of the floor"
BEGIN, END = "<!-- kernels -->", "<!-- /kernels -->"
SCHEMA = 2

TITLES = {
    "bsr_gemm": "{m}×{n}×{k}, {blocks-per-row} blocks a block-row",
    "trajectory_resample": "{batch} × {steps} → {targets} samples, {features} features",
    "attention": "{batch} × {heads} heads, {sequence} keys, {features} features",
    "attention_causal": "{heads} heads on {kv-heads}, {sequence} keys, {features} features",
}
# What the sizes of trajectory_resample say of the times; it is shown in a table of its own.
OTHER_TIMES = {
    "shuffled": "shuffled targets",
    "bursty": "bursty samples",
    "lognormal": "log-normal gaps",
}


class RecordError(Exception):
    """The record is missing, incomplete or wrong."""


@dataclass(frozen=True)
class Entry:
    """One contestant, in microseconds a launch; `None` where it was not measured."""

    name: str
    ours: bool
    floor: bool
    plain: float | None  # inside a graph
    dependent: float | None  # the same with dependent launches
    flop: int
    configuration: str

    @property
    def title(self) -> str:
        return re.sub(r"(?<=\d)x(?=\d)", "×", self.name)

    @property
    def us(self) -> float:
        """The faster of plain and dependent launches."""
        return min(time for time in (self.plain, self.dependent) if time is not None)


@dataclass(frozen=True)
class Problem:
    """The contestants at one family's problem of one size."""

    family: Family
    sizes: dict[str, Any]
    entries: list[Entry]

    @property
    def title(self) -> str:
        return TITLES[self.family.name].format(**self.sizes)

    @property
    def times(self) -> str | None:
        """What is not regular about the times of the samples."""
        named = "shuffled" if "shuffled" in self.sizes else self.sizes.get("times", "")
        return OTHER_TIMES.get(named)

    @property
    def floor(self) -> Entry:
        return min((entry for entry in self.entries if entry.floor), key=lambda entry: entry.us)

    @property
    def floor_word(self) -> str:
        """What is slower than some kernel is no floor."""
        everyone = (*self.ours, *self.peers)
        return "floor" if all(self.floor.us <= entry.us for entry in everyone) else "stream"

    @property
    def ours(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.ours]

    @property
    def best(self) -> Entry:
        return min(self.ours, key=lambda entry: entry.us)

    @property
    def peers(self) -> list[Entry]:
        return [entry for entry in self.entries if not entry.ours and not entry.floor]


@dataclass(frozen=True)
class Record:
    """The results of one run of kernels/peers/run.sh."""

    gpu: str
    day: str
    driver: str
    versions: dict[str, str]
    problems: list[Problem]


def read(path: Path) -> Record:
    """The record. It must have a right output and a time of every shipped variant at every size."""
    try:
        record = json.loads(path.read_text())
    except FileNotFoundError:
        raise RecordError("it does not exist") from None
    if record["schema"] != SCHEMA:
        raise RecordError(f"its schema is {record['schema']}, and only {SCHEMA} is supported")
    if not record["right"]:
        raise RecordError("a contestant was wrong or did not run")
    contests = {key(c["family"], c["sizes"]): c for c in record["contests"]}
    problems = [problem(family, sizes, contests) for family in FAMILIES for sizes in family.sizes]
    machine = record["machine"]
    return Record(
        machine["gpu"], record["date"][:10], machine["driver"], record["versions"], problems
    )


def key(family: str, sizes: dict[str, Any]) -> str:
    return " ".join([family, *(f"{name} {value}" for name, value in sizes.items())])


def problem(family: Family, sizes: dict[str, Any], contests: dict[str, Any]) -> Problem:
    contest = contests.get(key(family.name, sizes))
    if contest is None:
        raise RecordError(f"it lacks {key(family.name, sizes)}")
    found: dict[str, dict[bool, Any]] = {}
    for one in contest["contestants"]:
        found.setdefault(one["name"], {})[one["dependent"]] = one
    entries = [entry(name, by_launch) for name, by_launch in found.items()]
    ours = [entry.name for entry in entries if entry.ours]
    if ours != list(family.variants):
        raise RecordError(f"for {family.name} it has {ours}, not {list(family.variants)}")
    if not any(entry.floor for entry in entries):
        raise RecordError(f"it has no floor of {key(family.name, sizes)}")
    return Problem(family, sizes, entries)


def entry(name: str, by_launch: dict[bool, Any]) -> Entry:
    """A contestant, from its results with plain (False) and with dependent launches (True)."""
    plain, dependent = by_launch.get(False), by_launch.get(True)
    one = plain or dependent
    return Entry(
        name,
        one["ours"],
        one["floor"],
        plain and plain["median_us"],
        dependent and dependent["median_us"],
        one["flop"],
        one["configuration"],
    )


def time(us: float | None) -> str:
    return "" if us is None else f"{us:.1f}" if us >= 100 else f"{us:.2f}"


def block(record: Record) -> str:
    """What the page shows between the two comments."""
    regular = [one for one in record.problems if one.times is None]
    parts = [caption(record), f"![{ALTERNATIVE}]({PICTURE.name})"]
    parts += [table(one) for one in regular]
    parts.append(other_times([one for one in record.problems if one.times is not None]))
    return "\n\n".join(parts)


def table(one: Problem) -> str:
    """All contestants of one problem: the floor, ours, and the peers."""
    lines = [
        f"### `{one.family.name}`: {one.title}",
        "",
        f"| | us | dependent, us | / {one.floor_word} | / fastest of ours |",
        "|---|--:|--:|--:|--:|",
    ]
    for entry in [one.floor, *one.ours, *one.peers]:
        is_stream = one.floor_word == "stream"
        floor_name = f"*{entry.title}*" if is_stream else f"*floor: {entry.title}*"
        name = floor_name if entry.floor else entry.title
        name = f"`{name}`" if entry.ours else name
        if entry is one.best:
            name = f"**{name}**"
        floor = f"{entry.us / one.floor.us:.2f}"
        best = "" if entry.floor else f"{entry.us / one.best.us:.2f}"
        times = " | ".join(map(time, (entry.plain, entry.dependent)))
        lines.append(f"| {name} | {times} | {floor} | {best} |")
    return "\n".join(lines)


def other_times(problems: list[Problem]) -> str:
    """The faster of plain and dependent launches of each, where the times are not regular."""
    names = [entry.name for entry in (*problems[0].ours, *problems[0].peers)]
    columns = ["stream", *(entry.title for entry in (*problems[0].ours, *problems[0].peers))]
    lines = [
        f"### `{problems[0].family.name}`: other times",
        "",
        "The faster of plain and of dependent launches, in us. Bold: the fastest kernel of a row.",
        "",
        f"| | {' | '.join(columns)} |",
        "|---|" + "--:|" * len(columns),
    ]
    for one in problems:
        by_name = {entry.name: entry for entry in one.entries}
        entries = [by_name[name] for name in names]
        best = min(entry.us for entry in entries)
        times = [f"**{time(e.us)}**" if e.us == best else time(e.us) for e in entries]
        lines.append(f"| {one.title}, {one.times} | {' | '.join([time(one.floor.us), *times])} |")
    return "\n".join(lines)


def caption(record: Record) -> str:
    versions = {name: version.split("+")[0] for name, version in record.versions.items() if version}
    return "\n".join(
        [
            f"{record.gpu}, driver {record.driver}, {record.day}; CUDA {versions['cuda']}, PyTorch "
            f"{versions['torch']}, Triton {versions['triton']}; one run of `kernels/peers/run.sh`. "
            "All times are medians, in microseconds a launch.",
            "",
            "* *us*: launches one after another inside a CUDA graph. *dependent*: with "
            "programmatic dependent launch. The ratios take the faster of the two.",
            "* The floor is measured in the same run. `bsr_gemm`, `trajectory_resample`: a stream "
            "of as many bytes; where a kernel is faster, it is called *stream*, and bounds "
            "nothing. `attention`: its copies to shared memory alone. `attention_causal`: a dense "
            "product of as many FLOP.",
            "* cuBLAS and cuBLASLt multiply dense matrices: the smaller product has as many FLOP "
            "as `bsr_gemm`, the larger is the one without sparsity. *torch.compile, tuned* is "
            "`max_autotune` with coordinate descent.",
            *flashinfer(record),
        ]
    )


def flashinfer(record: Record) -> list[str]:
    """What FlashInfer's rows mean, if it took part."""
    entries = (entry for one in record.problems for entry in one.entries)
    found = next((entry for entry in entries if entry.name.startswith("FlashInfer")), None)
    if found is None:
        return []
    return [
        f"* FlashInfer, {found.configuration}: backends `fa3` (FlashAttention 3) and `fa2`. "
        "*ragged* is its call for many requests, here one."
    ]


def parts(text: str) -> tuple[str, str, str]:
    """The page before, between and after the two comments."""
    before, shown, after = re.split(f"(?<={BEGIN})|(?={END})", text)
    return before, shown, after


# The picture: one panel for each problem, in two columns; inches.
WIDTH = 9.6
COLUMNS = (("bsr_gemm", "attention", "attention_causal"), ("trajectory_resample",))
MARGIN = 0.15
HEADER = 0.5
TITLE = 0.42  # above the bars of a panel
FOOT = 0.28  # below them
ROW = 0.195
NAMES = 2.15  # left of the bars
TIMES = 0.62  # right of them
INK, FAINT, GRID = "#24292f", "#59636e", "#d8dee4"
OURS, BEST = "#8cb8e8", "#1f6fc4"


def draw(record: Record) -> str:
    """The picture as SVG, the same bytes for the same record and matplotlib."""
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.patches import FancyBboxPatch

    # Text stays text: outlines are more than twice as large. Verdana has the widths of the font
    # that the layout uses.
    mpl.rcParams.update(
        {
            "svg.fonttype": "none",
            "svg.hashsalt": "kernels",
            "font.sans-serif": ["DejaVu Sans", "Verdana"],
            "font.size": 8.5,
        }
    )
    columns = [
        [p for p in record.problems if p.family.name in names and p.times is None]
        for names in COLUMNS
    ]
    height = HEADER + max(sum(map(panel_height, column)) for column in columns) + MARGIN
    figure = Figure(figsize=(WIDTH, height))
    figure.patch.set_alpha(0)
    # White behind the ink, whatever the page's colour.
    card = FancyBboxPatch(
        (0.06, 0.06),
        WIDTH - 0.12,
        height - 0.12,
        boxstyle="round,pad=0,rounding_size=0.1",
        facecolor="white",
        edgecolor=GRID,
        transform=figure.dpi_scale_trans,
        zorder=-1,
    )
    figure.add_artist(card)
    legend(figure, record, height)
    for number, column in enumerate(columns):
        left = MARGIN + number * (WIDTH - MARGIN) / len(columns)
        top = height - HEADER
        for one in column:
            panel(figure, one, left, top, (WIDTH - MARGIN) / len(columns) - MARGIN)
            top -= panel_height(one)
    svg = io.StringIO()
    figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
    return "\n".join(line.rstrip() for line in svg.getvalue().splitlines()) + "\n"


def shown(one: Problem) -> list[Entry]:
    """The entries of the picture: a peer that does more work than ours is only in the table, and so
    is the first rung of `bsr_gemm`, which would leave no room for the others."""
    of_ours = [entry for entry in one.ours if entry.us < 50 * one.best.us]
    return [*of_ours, *(peer for peer in one.peers if peer.flop <= 1.05 * one.best.flop)]


def panel_height(one: Problem) -> float:
    return TITLE + ROW * len(shown(one)) + FOOT


def legend(figure: "Figure", record: Record, height: float) -> None:
    from matplotlib.patches import Rectangle

    y = height - 0.3
    inches = figure.dpi_scale_trans
    text: dict[str, Any] = {"transform": inches, "va": "center", "color": INK}
    figure.text(
        MARGIN + 0.05,
        y,
        f"Time of a launch, as a multiple of its floor (log scale): {record.gpu}, {record.day}",
        fontweight="bold",
        **text,
    )
    x = WIDTH - 3.25
    for name, fill, edge in (
        ("fastest of ours", BEST, BEST),
        ("ours", OURS, OURS),
        ("peer", "white", FAINT),
    ):
        box = Rectangle((x, y - 0.05), 0.2, 0.1, facecolor=fill, edgecolor=edge, transform=inches)
        figure.add_artist(box)
        figure.text(x + 0.26, y, name, **text)
        x += 0.5 + 0.062 * len(name) + 0.12


def panel(figure: "Figure", one: Problem, left: float, top: float, width: float) -> None:
    entries = shown(one)
    _, height = figure.get_size_inches()
    bars = ROW * len(entries)
    bottom = top - TITLE - bars
    across = width - NAMES - TIMES
    axes = figure.add_axes(((left + NAMES) / WIDTH, bottom / height, across / WIDTH, bars / height))
    axes.set_xscale("log", base=2)
    axes.patch.set_visible(False)
    multiples = [entry.us / one.floor.us for entry in entries]
    axes.set_xlim(min(1.0, *multiples), max(2.0, *multiples))
    axes.set_ylim(len(entries) - 0.5, -0.5)
    scale(axes, one)
    for y, (entry, multiple) in enumerate(zip(entries, multiples, strict=True)):
        is_best = entry is one.best
        colour = BEST if is_best else OURS if entry.ours else FAINT
        fill = colour if entry.ours else "white"
        axes.barh(y, multiple - 1, 0.66, left=1, color=fill, edgecolor=colour, linewidth=0.9)
        text: dict[str, Any] = {
            "textcoords": "offset points",
            "va": "center",
            "color": INK,
            "fontweight": "bold" if is_best else "normal",
        }
        axes.annotate(f"{time(entry.us)} us", (max(multiple, 1), y), xytext=(4, 0), **text)
        at_the_left: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "ha": "right"}
        axes.annotate(entry.title, (0, y), xytext=(-6, 0), **at_the_left, **text)
    figure.text(
        left + 0.05,
        top - TITLE + 0.1,
        f"{one.family.name}: {one.title}",
        transform=figure.dpi_scale_trans,
        color=INK,
        fontweight="bold",
        va="bottom",
    )


def scale(axes: "Axes", one: Problem) -> None:
    """The floor, or the stream, as a line, and its multiples."""
    low, high = axes.get_xlim()
    powers = [2.0**i for i in range(math.floor(math.log2(low)), math.ceil(math.log2(high)))]
    between = [1.5 * power for power in powers if high < 8]
    ticks = sorted(tick for tick in powers + between if low <= tick <= high)
    floor = f"{one.floor_word} {one.floor.us:.2f} us"
    names = [floor if tick == 1 else f"{tick:g}×" for tick in ticks]
    axes.set_xticks(ticks)
    labels = axes.set_xticklabels(names, color=FAINT, fontsize=7.5)
    labels[ticks.index(1)].set_horizontalalignment("right")
    axes.minorticks_off()
    axes.tick_params(length=0, pad=3)
    axes.set_yticks([])
    for side in axes.spines.values():
        side.set_visible(False)
    axes.grid(axis="x", color=GRID, linewidth=0.7, zorder=0)
    axes.set_axisbelow(True)
    axes.axvline(1, color=INK, linewidth=1.2, zorder=3, clip_on=False)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="kernels/peers/picture.py",
        description=(__doc__ or "").splitlines()[0],
        epilog="exit status: 0 done, or no difference; 1 the page differs; 2 something is missing",
    )
    parser.add_argument("--check", action="store_true", help="compare the table, write nothing")
    options = parser.parse_args(arguments)
    try:
        record = read(RECORD)
    except RecordError as error:
        print(
            f"{RECORD.relative_to(ROOT)}: {error}; to record it, run `kernels/peers/run.sh "
            f"{RECORD.relative_to(ROOT)}` on an H200",
            file=sys.stderr,
        )
        return 2
    before, found, after = parts(PAGE.read_text())
    made = f"\n{block(record)}\n"
    if options.check:
        if found == made:
            return 0
        print(
            f"{PAGE.relative_to(ROOT)} does not show the data of {RECORD.relative_to(ROOT)}: "
            "to write it, run `python3 kernels/peers/picture.py`",
            file=sys.stderr,
        )
        return 1
    try:
        picture = draw(record)
    except ModuleNotFoundError as error:
        print(f"{error}: run `{sys.executable} -m pip install matplotlib`", file=sys.stderr)
        return 2
    PAGE.write_text(before + made + after)
    PICTURE.write_text(picture)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
