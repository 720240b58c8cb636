#!/usr/bin/env python3
"""The metrics of each chip: makes crates/ncu-report/src/catalog/metrics.txt, and checks it.

    ci/chips.py make [--lists FOLDER] LIBRARY...
    ci/chips.py check LIBRARY...

A LIBRARY is NVIDIA's libnvperf_host.so, from the PyPI package nvidia-cuda-cupti (or -cu12, which also
knows Volta). It needs no GPU; nvperf_host.h beside it documents the interface. FOLDER has answers of
`ncu --query-metrics --chip CHIP`, one CHIP.tsv with name, type and unit for chips with equal answers.
A chip has every metric that any of them names. `make` fails where two of them contradict each other.
`check` fails unless each metric of the libraries is in the file, with its type and its unit.

The file: the first line has the chips, those with equal metrics as one group. Each other line is a
metric: how many characters it shares with the one before, the rest of its name, and, where they differ
from the one before, type, unit and the groups that have it, as bits of a hexadecimal number.
"""

import ctypes as c
import pathlib
import sys
from collections import defaultdict

FILE = pathlib.Path(__file__).parent.parent / "crates/ncu-report/src/catalog/metrics.txt"
TYPES = "CRT"
"""Counter, ratio and throughput, in the order of NVPW_MetricType."""
SUM, NO_SUBMETRIC, RATIO = 3, 0, 21
"""NVPW_RollupOp and NVPW_Submetric."""

# The library's units in ncu's words. A level that is added up each cycle (`gpc_cycles` times a unit)
# has the unit of the level. What is not here is a plain number.
WORDS = {
    "bytes": "byte", "kilobytes": "byte", "tmem_accesses": "byte", "ctas": "block", "instructions": "inst",
    "nanoseconds": "ns", "warps": "warp", "threads": "thread", "branch_targets": "branches",
    "registers": "register", "percent": "%", "fe_ops": "ops", "l2_tags": "tag", "gcc_requests": "request",
    "l2_requests": "request", "lrc_reqs": "request", "syslrc_requests": "request", "sysl2_requests": "request",
    "l2_sectors": "sector", "lrc_sectors": "sector", "syslrc_sectors": "sector", "sysl2_sectors": "sector",
}  # fmt: skip


def ncu_unit(above, below):
    """ncu's name of a unit of the library: the product of some units over that of others."""
    # ncu names no unit for ratios of different caches.
    if len(above) > 1 and "gpc_cycles" not in above:
        return ""
    level = [unit for unit in above if unit != "gpc_cycles"] or above

    def word(unit):
        return "cycle" if unit.endswith("_cycles") else WORDS.get(unit, "")

    above, below = word(level[0]), word(below[0]) if below else ""
    return f"{above}/{below}" if above and below else above


def struct(*fields):
    """Parameters of a call; all begin with their size and a null pointer."""
    head = [("size", c.c_size_t), ("private", c.c_void_p)]
    return type("Parameters", (c.Structure,), {"_fields_": head + list(fields)})


TEXT, POINTER, SIZE = c.c_char_p, c.c_void_p, c.c_size_t
Nothing = struct()
Chips = struct(("names", c.POINTER(TEXT)), ("count", SIZE))
Scratch = struct(("chip", TEXT), ("available", POINTER), ("bytes", SIZE))
Initialize = struct(
    ("scratch", POINTER), ("bytes", SIZE), ("chip", TEXT), ("available", POINTER), ("data", POINTER),
    ("data_bytes", SIZE), ("evaluator", POINTER),
)  # fmt: skip
Destroy = struct(("evaluator", POINTER))
Names = struct(
    ("evaluator", POINTER), ("type", c.c_uint8), ("names", POINTER), ("starts", c.POINTER(SIZE)), ("count", SIZE)
)
Units = struct(
    ("evaluator", POINTER), ("request", POINTER), ("request_size", SIZE), ("units", POINTER), ("count", SIZE),
    ("unit_size", SIZE),
)  # fmt: skip
UnitName = struct(("evaluator", POINTER), ("unit", c.c_uint32), ("one", TEXT), ("many", TEXT))


class Request(c.Structure):
    """Which value of which metric."""

    _fields_ = [("index", SIZE), ("type", c.c_uint8), ("rollup", c.c_uint8), ("submetric", c.c_uint16)]


class Factor(c.Structure):
    """A unit, and its power."""

    _fields_ = [("unit", c.c_uint32), ("exponent", c.c_int8)]


class Library:
    """NVIDIA's host library."""

    def __init__(self, path):
        self.library = c.CDLL(path)
        self.call("InitializeHost", Nothing())

    def call(self, name, parameters):
        """Calls a function, and returns the parameters with what it wrote."""
        # The size ends with the last field, without the padding after it.
        name_of_last, type_of_last = parameters._fields_[-1]
        parameters.size = getattr(type(parameters), name_of_last).offset + c.sizeof(type_of_last)
        status = getattr(self.library, "NVPW_" + name)(c.byref(parameters))
        if status:
            raise SystemExit(f"NVPW_{name}: status {status}")
        return parameters

    def lists(self):
        """Chip to metric to (type, unit)."""
        chips = self.call("GetSupportedChipNames", Chips())
        return {name.decode().lower(): self.metrics(name) for name in chips.names[: chips.count]}

    def metrics(self, chip):
        """Metric to (type, unit)."""
        scratch = self.call("CUDA_MetricsEvaluator_CalculateScratchBufferSize", Scratch(chip=chip))
        buffer = c.create_string_buffer(scratch.bytes)
        asked = Initialize(scratch=c.addressof(buffer), bytes=scratch.bytes, chip=chip)
        evaluator = self.call("CUDA_MetricsEvaluator_Initialize", asked).evaluator
        metrics = {}
        for number, letter in enumerate(TYPES):
            found = self.call("MetricsEvaluator_GetMetricNames", Names(evaluator=evaluator, type=number))
            for index in range(found.count):
                name = c.string_at(found.names + found.starts[index]).decode()
                metrics[name] = letter, "%" if letter == "T" else self.unit(evaluator, letter, index)
        self.call("MetricsEvaluator_Destroy", Destroy(evaluator=evaluator))
        return metrics

    def unit(self, evaluator, letter, index):
        """The unit of a counter's sum, or of a ratio."""
        submetric = RATIO if letter == "R" else NO_SUBMETRIC
        request = Request(index=index, type=TYPES.index(letter), rollup=SUM, submetric=submetric)
        factors = (Factor * 8)()
        asked = Units(
            evaluator=evaluator, request=c.addressof(request), request_size=Request.submetric.offset + 2,
            units=c.addressof(factors), count=len(factors), unit_size=Factor.exponent.offset + 1,
        )  # fmt: skip
        above, below = [], []
        for factor in factors[: self.call("MetricsEvaluator_GetMetricDimUnits", asked).count]:
            name = self.call("MetricsEvaluator_DimUnitToString", UnitName(evaluator=evaluator, unit=factor.unit))
            (above if factor.exponent > 0 else below).append(name.many.decode())
        return ncu_unit(above, below)


def ncu_lists(folder):
    """Chip to metric to (type, unit), of the answers in a folder and below it. `?` is no unit."""
    lists = {}
    for path in pathlib.Path(folder).rglob("*.tsv"):
        rows = (line.split("\t") for line in path.read_text().splitlines())
        lists[path.stem] = {name: (kind[0], unit) for name, kind, unit in rows}
    return lists


def read():
    """(chip, metric) to (type, unit), of the file."""
    head, *rows = FILE.read_text().split("\n")[:-1]
    groups = [group.split(" ") for group in head.split("\t")]
    metrics, name, facts = {}, "", ()
    for row in rows:
        shared, rest, *changed = row.split("\t")
        name = name[: int(shared)] + rest
        facts = changed or facts
        kind, unit, bits = facts
        for chip in (chip for at, group in enumerate(groups) if int(bits, 16) >> at & 1 for chip in group):
            metrics[chip, name] = kind, unit
    return metrics


def make(sources):
    """Writes the file from lists, of which each is chip to metric to (type, unit)."""
    known = {}
    for lists in sources:
        for chip, metrics in lists.items():
            for name, now in metrics.items():
                before = known.setdefault((chip, name), now)
                if before[1] == "?":
                    known[chip, name] = now
                elif before[0] != now[0] or now[1] not in ("?", before[1]):
                    raise SystemExit(f"{chip}: {name} is {before} and {now}")
    # All but four metrics are the same on all chips that have them.
    metrics = defaultdict(lambda: defaultdict(set))
    for (chip, name), facts in known.items():
        metrics[name][facts].add(chip)
    for name, of in metrics.items():
        for kind, unit in [facts for facts in of if facts[1] == "?"]:
            (elsewhere,) = (facts for facts in of if facts[0] == kind and facts[1] != "?")
            of[elsewhere] |= of.pop((kind, unit))
    every = sorted({chip for chip, _ in known})
    groups = defaultdict(list)
    for chip in every:
        groups[frozenset((name, facts) for (of, name), facts in known.items() if of == chip)].append(chip)
    groups = list(groups.values())
    # Metrics of PM sampling begin with how they are sampled. Without it they have a unit, and are no
    # metric of a chip by themselves.
    for name, facts in list(metrics.items()):
        plain = name.rsplit(".", 1)[-1]
        if plain not in metrics:
            metrics[plain] = {of: set() for of in facts}
    lines, before, said = ["\t".join(" ".join(group) for group in groups)], "", None
    for name in sorted(metrics, key=str.encode):
        for (kind, unit), chips in sorted(metrics[name].items()):
            same = [a == b for a, b in zip(name, before)] + [False]
            shared = same.index(False)
            bits = sum(1 << at for at, group in enumerate(groups) if group[0] in chips)
            now = kind, unit, f"{bits:x}"
            lines.append("\t".join([str(shared), name[shared:], *(() if now == said else now)]))
            before, said = name, now
            if len(metrics[name]) > 1:
                print(f"{name} is {kind} {unit!r} on {sorted(chips)}")
    FILE.write_text("\n".join(lines) + "\n")
    print(f"{FILE.name}: {len(metrics)} metrics, {len(every)} chips in {len(groups)} groups")


def check(sources):
    """Compares the file with lists."""
    metrics = read()
    compared = wrong = 0
    for lists in sources:
        for chip, wanted in lists.items():
            for name, (kind, unit) in wanted.items():
                compared += 1
                found = metrics.get((chip, name), ("", ""))
                if found[0] != kind or unit not in ("?", found[1]):
                    wrong += 1
                    print(f"{chip}: {name} is {kind} {unit!r}, the file has {found}", file=sys.stderr)
    print(f"{compared} metrics of {sum(map(len, sources))} lists compared, {wrong} differences")
    return 1 if wrong or not compared else 0


def main(arguments):
    command, *paths = arguments or [""]
    sources = []
    if paths[:1] == ["--lists"]:
        sources, paths = [ncu_lists(paths[1])], paths[2:]
    sources += [Library(path).lists() for path in paths]
    if command not in ("make", "check") or not sources:
        raise SystemExit(__doc__)
    return make(sources) if command == "make" else check(sources)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
