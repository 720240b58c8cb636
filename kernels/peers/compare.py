"""Compares the shipped kernels with the libraries of their fields, on one GPU in one run."""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import torch

import attention
import attention_causal
import bsr_gemm
import report
import trajectory_resample
from binding import Variant
from contest import STREAM_HANDLE, run
from families import Selection, Sizes, build, select
from floors import Floors
from report import Report
from sweep import compile_all
from targets import targets

PEERS = {
    "bsr_gemm": bsr_gemm,
    "trajectory_resample": trajectory_resample,
    "attention": attention,
    "attention_causal": attention_causal,
}


def compare(selections: list[Selection], folder: Path, sweep: bool) -> list[Report]:
    """Runs every contest and prints its table."""
    if sweep:
        jobs = [
            job
            for selection in selections
            for sizes in selection.family.sizes
            for job in PEERS[selection.family.name].compile_jobs(sizes)
        ]
        start_s = time.monotonic()
        compile_all(jobs)
        print(f"{len(jobs)} configurations compiled in {time.monotonic() - start_s:.0f} s")
    reports = []
    with torch.inference_mode(), torch.cuda.stream(torch.cuda.ExternalStream(STREAM_HANDLE)):
        print(report.title())
        floors = Floors(folder)
        for selection in selections:
            variants = [Variant(folder, selection.family, name) for name in selection.variants]
            for sizes in selection.family.sizes:
                reports.append(compare_one(selection, sizes, variants, floors, sweep))
                print("\n" + report.table(reports[-1]), flush=True)
    return reports


def compare_one(
    selection: Selection, sizes: Sizes, variants: list[Variant], floors: Floors, sweep: bool
) -> Report:
    peers = PEERS[selection.family.name]
    contest = peers.contest(selection.family, sizes, variants, floors, sweep)
    outcomes = run(contest)
    return Report(contest, outcomes, targets(contest, outcomes))


def main(options: argparse.Namespace) -> int:
    """Runs the whole comparison. Returns the exit status."""
    with tempfile.TemporaryDirectory() as scratch:
        try:
            selections = select(options.only)
            folder = options.prebuilt or Path(scratch)
            if options.prebuilt is None:
                build(selections, folder)
        except (ValueError, FileNotFoundError, RuntimeError) as error:
            print(f"kernels/peers/run.sh: {error}", file=sys.stderr)
            return 2
        reports = compare(selections, folder, options.sweep)
    if options.output is not None:
        report.write(options.output, reports)
    right = all(one.right for one in reports)
    met = all(target.met for one in reports for target in one.targets)
    if not right:
        print("a contestant was wrong or did not run", file=sys.stderr)
    if options.targets and not met:
        print("a target was missed", file=sys.stderr)
    return 0 if right and (met or not options.targets) else 1
