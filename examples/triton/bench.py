"""What both programs share: options, the measured range, and the result that the gate reads."""

import argparse
import json
import os

import torch


def options(**defaults):
    """The numbers on the command line. Seeds the values of the inputs, which differ in every run."""
    torch.manual_seed(int(os.environ.get("SPARSEK_GATE_SEED", "0")))
    parser = argparse.ArgumentParser()
    for name, value in defaults.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    return parser.parse_args()


def measured(launches, launch):
    """Launches once before the range that is measured: compilation and tuning are not part of it."""
    launch()
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStart()
    for _ in range(launches):
        launch()
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStop()


def judged(found, expected, rtol, atol, tuned=None):
    """Tells the gate how many values are wrong, and what an autotuner chose; the exit status."""
    wrong = int((~torch.isclose(found.float(), expected.float(), rtol=rtol, atol=atol)).sum())
    if path := os.environ.get("SPARSEK_GATE_RESULT"):
        with open(path, "w") as file:
            result = {"correct": wrong == 0, "wrong": wrong, "checked": found.numel()}
            json.dump({**result, "tuned": tuned or {}}, file)
    print(f"{wrong} of {found.numel()} values are wrong")
    return wrong != 0
