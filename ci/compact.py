#!/usr/bin/env python3
"""Adds one machine start to the data set of `ci/evaluate.rs`.

    ci/compact.py RECORDING ci/recordings/rounds/NAME

RECORDING holds aa/<suite>/<variant>/ and planted/<suite>/<variant>/, each with profile.json and
base/profile.json as `sparsek-gate check --against` leaves them. The profiles are written without
white space and without the profiler's argv, which names paths of the machine; nothing else is
left out.
"""

import json
import pathlib
import sys


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    recording, target = map(pathlib.Path, sys.argv[1:])
    profiles = [path for kind in ("aa", "planted") for path in (recording / kind).rglob("profile.json")]
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
