#!/usr/bin/env python3
"""Compares the counters that ncu read with those that CUPTI read inside of the program, on one GPU.

    ci/collector-agrees.py NCU CUPTI [NCU CUPTI]... [--within PERCENT]

NCU and CUPTI are folders of profiles, as `sparsek-gate profile --output DIR` leaves them with
`collector = "ncu"` and `collector = "cupti"`, both with `clock_control = "none"`. For each variant,
kernel and metric one line says both means, their difference and its standard error over processes
(over launches where a side has one process), and whether they agree. Several pairs of folders, which
were measured in turn, are compared pair by pair, so that a drift of the GPU is in none of the
differences; the error is then that of their mean. Two values agree within three standard errors,
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
    """The texts of a line after the metric's name, and whether the two agree. Each side has one
    metric a pair of folders."""
    pairs = [(summary(a["samples"]), summary(b["samples"])) for a, b in zip(ncu, cupti)]
    if any(side is None for pair in pairs for side in pair):
        return ["-", "-", "", "", "not measured"], False
    one, other = (statistics.fmean(pair[side][0] for pair in pairs) for side in (0, 1))
    differences = [b[0] - a[0] for a, b in pairs]
    difference = statistics.fmean(differences)
    if len(pairs) > 1:
        error = statistics.stdev(differences) / math.sqrt(len(pairs))
    else:
        error = math.hypot(pairs[0][0][1], pairs[0][1][1])
    size = abs(one)
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
    return [f"{one:.6g}", f"{other:.6g}", percent, noise, verdict], verdict != "DIFFERS"


def lines(ncu, cupti, within):
    """One line a variant, kernel and metric that either side has, with whether the two agree. Each
    side has its profiles a pair of folders."""
    folders = [*ncu, *cupti]
    for variant in sorted(set().union(*folders)):
        if not all(variant in folder for folder in folders):
            yield [variant, "", "", "", "", "", "not in every folder"], False
            continue
        sides = [[kernels(folder[variant]) for folder in side] for side in (ncu, cupti)]
        measured = [of_folder for side in sides for of_folder in side]
        for key in sorted(set().union(*measured)):
            label = variant if len(measured[0]) == 1 else f"{variant} {key[0]}"
            if not all(key in of_folder for of_folder in measured):
                yield [f"{variant} {key[0]}", "", "", "", "", "", "kernel not in every folder"], False
                continue
            metrics = [[of_folder[key]["metrics"] for of_folder in side] for side in sides]
            known = set.intersection(*(set(one) for side in metrics for one in side))
            for metric in sorted(known):
                both = ([one[metric] for one in side] for side in metrics)
                texts, agrees = compare(*both, within)
                yield [label, metric, *texts], agrees


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folders", type=pathlib.Path, nargs="+", metavar="NCU CUPTI")
    parser.add_argument("--within", type=float, metavar="PERCENT")
    arguments = parser.parse_args()
    if len(arguments.folders) % 2:
        parser.error("the folders are pairs: NCU CUPTI [NCU CUPTI]...")
    ncu = [profiles(folder, "counters") for folder in arguments.folders[::2]]
    cupti = [profiles(folder, "cupti-counters") for folder in arguments.folders[1::2]]
    compared = list(lines(ncu, cupti, arguments.within))
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
