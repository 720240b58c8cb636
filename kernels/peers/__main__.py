"""Compares the shipped kernels with the libraries of their fields, on one GPU in one run.

Requirements are checked here, before anything of them is imported.
"""

import argparse
import importlib.util
import subprocess
import sys
from pathlib import Path

COMPUTE_CAPABILITY = "9.0"


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="kernels/peers/run.sh",
        description=(__doc__ or "").splitlines()[0],
        epilog="exit status: 0 every output was right; 1 an output was wrong, or with --targets a "
        "target was missed; 2 a requirement is missing",
    )
    parser.add_argument("output", nargs="?", type=Path, help="file for every sample, as JSON")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="FAMILY[/VARIANT]",
        help="of our kernels, compare only this; may be repeated",
    )
    parser.add_argument("--sweep", action="store_true", help="search Triton's configurations again")
    parser.add_argument("--targets", action="store_true", help="fail if a target is missed")
    parser.add_argument(
        "--prebuilt",
        type=Path,
        metavar="FOLDER",
        help="use libraries that kernels/peers/families.py FOLDER built, instead of compiling",
    )
    return parser.parse_args(arguments)


def missing() -> str | None:
    """What is missing and how to get it; None if nothing is. Does not use CUDA, because a process
    that has used it cannot fork children that use it too."""
    for package in ("torch", "triton"):
        if importlib.util.find_spec(package) is None:
            return (
                f"{sys.executable} has no {package}: `{sys.executable} -m pip install torch "
                "triton` (2.11 and 3.6 were used), or set PYTHON to a python3 that has it"
            )
    query = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]
    try:
        found = subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()
    except (OSError, subprocess.CalledProcessError) as error:
        return f"no NVIDIA GPU can be used: {error}; nvidia-smi is part of the driver"
    if not found or found[0] != COMPUTE_CAPABILITY:
        return (
            f"the first GPU has compute capability {found[0] if found else 'none'}, and the "
            f"kernels are for {COMPUTE_CAPABILITY} (H100, H200)"
        )
    return None


if __name__ == "__main__":
    options = parse(sys.argv[1:])
    reason = missing()
    if reason is not None:
        print(f"kernels/peers/run.sh: {reason}", file=sys.stderr)
        sys.exit(2)
    from compare import main

    sys.exit(main(options))
