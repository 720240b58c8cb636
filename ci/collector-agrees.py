#!/usr/bin/env python3
"""Compares the counters that ncu read with those that CUPTI read inside of the program, on one GPU.

    ci/collector-agrees.py NCU CUPTI [--within PERCENT]

NCU and CUPTI are folders of profiles, as `sparsek-gate profile --output DIR` leaves them with
`collector = "ncu"` and `collector = "cupti"`, both with `clock_control = "none"`. For each variant,
kernel and metric one line says both means, their difference and its standard error over processes
(over launches where a side has one process), and whether they agree: within three standard errors,
exactly where neither side varies, or within PERCENT of ncu's mean. Exits with 1 if any metric does
not agree, with 2 if nothing was compared.
"""

import argparse
import json
import math
import pathlib
import statistics
import sys

ERRORS = 3


def profiles(folder, tier):
    found = {}
    for path in sorted(folder.rglob("profile.json")):
        if "base" in path.relative_to(folder).parts:
            continue
        profile = json.loads(path.read_text())
        if profile["identity"]["tier"] != tier:
            sys.exit(f"{path} was measured by {profile['identity']['tier']}, not by {tier}")
        found[profile["variant"]] = profile
    return found


def kernels(profile):
    return {(k["name"], tuple(k["grid"]), tuple(k["block"])): k for k in profile["kernels"]}


def summary(samples):
    """Mean and its standard error; `None` where a launch has no value."""
    if any(value is None for process in samples for value in process) or not any(samples):
        return None
    means = [statistics.fmean(process) for process in samples if process]
    spread = means if len(means) > 1 else samples[0]
    error = statistics.stdev(spread) / math.sqrt(len(spread)) if len(spread) > 1 else 0.0
    return statistics.fmean(means), error


def compare(ncu, cupti, within):
    """The texts of a line after the metric's name, and whether the two agree."""
    one, other = summary(ncu["samples"]), summary(cupti["samples"])
    if one is None or other is None:
        return ["-" if one is None else f"{one[0]:.6g}", "-" if other is None else f"{other[0]:.6g}",
                "", "", "not measured"], False
    difference, error = other[0] - one[0], math.hypot(one[1], other[1])
    size = abs(one[0])
    if difference == 0:
        verdict = "equal"
    elif abs(difference) <= ERRORS * error:
        verdict = "within the noise"
    elif within is not None and abs(difference) <= within / 100 * size:
        verdict = f"within {within:g} %"
    else:
        verdict = "DIFFERS"
    percent = f"{100 * difference / size:+.3f} %" if size else "-"
    noise = f"{100 * error / size:.3f} %" if size else f"{error:.3g}"
    return [f"{one[0]:.6g}", f"{other[0]:.6g}", percent, noise, verdict], verdict != "DIFFERS"


def lines(ncu, cupti, within):
    """One line a variant, kernel and metric that either side has, with whether the two agree."""
    for variant in sorted(ncu.keys() | cupti.keys()):
        if variant not in ncu or variant not in cupti:
            yield [variant, "", "", "", "", "", "on one side only"], False
            continue
        one, other = kernels(ncu[variant]), kernels(cupti[variant])
        for key in sorted(one.keys() | other.keys()):
            if key not in one or key not in other:
                yield [f"{variant} {key[0]}", "", "", "", "", "", "kernel on one side only"], False
                continue
            label = variant if len(one) == 1 else f"{variant} {key[0]}"
            metrics = one[key]["metrics"], other[key]["metrics"]
            for metric in sorted(metrics[0].keys() & metrics[1].keys()):
                texts, agrees = compare(metrics[0][metric], metrics[1][metric], within)
                yield [label, metric, *texts], agrees


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("ncu", type=pathlib.Path)
    parser.add_argument("cupti", type=pathlib.Path)
    parser.add_argument("--within", type=float, metavar="PERCENT")
    arguments = parser.parse_args()
    sides = profiles(arguments.ncu, "counters"), profiles(arguments.cupti, "cupti-counters")
    compared = list(lines(*sides, arguments.within))
    if not compared:
        print("no profiles to compare", file=sys.stderr)
        return 2
    head = ["variant", "metric", "ncu", "cupti", "difference", "its error", "agree"]
    rows = [head, *(texts for texts, _ in compared)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip())
    different = sum(not agrees for _, agrees in compared)
    print(f"{len(compared) - different} of {len(compared)} agree")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
