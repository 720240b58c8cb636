#!/usr/bin/env python3
"""Adds one machine start to the rounds that are kept: those that `crates/evaluation` draws from, or
those of the other kernels and of programs.

    ci/compact.py RECORDING ci/recordings/rounds/NAME
    ci/compact.py RECORDING ci/recordings/unchanged/NAME
    ci/compact.py RECORDING ci/recordings/programs/NAME

RECORDING has aa/<suite>/<variant>/ and planted/<suite>/<variant>/, each with profile.json,
static.json and base/ as `sparsek-gate check --against` leaves them, or aa/<program>/ with those of
`compare A A --output`. These are written without white
space and without the profiler's argv, which names paths of the machine; nothing else is left out of
them. Captures, logs and argv files are not copied.
"""

import json
import pathlib
import sys


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    recording, target = map(pathlib.Path, sys.argv[1:])
    profiles = [
        path
        for kind in ("aa", "planted")
        for name in ("profile.json", "static.json")
        for path in (recording / kind).rglob(name)
    ]
    if not profiles:
        sys.exit(f"{recording} holds no aa/ or planted/ with profiles")
    for path in profiles:
        profile = json.loads(path.read_text())
        for capture in profile["provenance"]["captures"]:
            capture["argv"] = []
        written = target / path.relative_to(recording)
        written.parent.mkdir(parents=True, exist_ok=True)
        written.write_text(json.dumps(profile, separators=(",", ":"), ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
