"""Makes the tree ready for a release, and prints each file that it changes.

    python3 ci/release/prepare.py 0.2.0 --owner NAME [--day 2026-12-01]

Sets the version wherever it stands, writes the day of the release into CHANGELOG.md, names who publishes
the tool wherever it is named, and rewrites what pages say of the time before the first release.
`ci/release/ready.sh` then says whether something is left. After the first release, BEFORE can go.
"""

import argparse
import datetime
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Files that name the owner, or that are read by people. Tests read the owner from Cargo.toml.
PAGES = [
    "README.md", "CHANGELOG.md", "Cargo.toml", "action.yml", "ci/Containerfile", "ci/install.sh",
    "docs/*.md", "ci/github/**/*.yml", "ci/gitlab/*.yml", "src/engine/templates/*", ".github/workflows/*.yml",
]
# A line of a workflow that works around that nothing is published, or that says whom to name.
LINE = re.compile(r"^.*# (?:until the first release\b.*|Replace OWNER with the owner of the action\.)\n", re.M)
# What else is true only before the first release, and what stands there afterwards.
BEFORE = [
    ("README.md",
     "Nothing is published yet. Until the first release, build it from a clone:\n\n"
     "```sh needs: Rust, and minutes to compile\ncargo install --locked --path .\n```\n",
     "On Linux, x86_64 or aarch64:\n\n```sh needs: a package index\npip install sparsek-gate\n```\n\n"
     "[Other ways to install it](docs/install.md): an archive, a crate, or from the sources.\n"),
    ("README.md", "Replace `OWNER` with the account that has the tool. ", ""),
    ("CHANGELOG.md", " Nothing is published yet.\n", "\n"),
    ("docs/install.md", "**Nothing is published yet.** Until the first release, build from the sources.\n\n", ""),
    ("docs/install.md", "From the first release on:\n\n", ""),
    ("docs/ci.md", " Replace `OWNER` with the owner of the action.", ""),
    ("docs/ci.md",
     ". Nothing is published yet: until the first release, add `build: \"true\"` wherever the action is used, also "
     "in the workflows of the table;", ";"),
    ("docs/ci.md", " Nothing is published yet, so this fails until the first release.", ""),
    ("docs/many-gpus.md", "replace `OWNER`; ", ""),
]


def replaced(pattern: str, by: str, text: str, what: str) -> str:
    """The text with each match replaced; ends the run where there is none."""
    new, count = re.subn(pattern, by, text, flags=re.M)
    if count == 0:
        sys.exit(f"ci/release/prepare.py: {what}")
    return new


def versions(version: str, day: str) -> dict[Path, str]:
    """The files that state the version of the tool, with the new one."""
    cargo = (ROOT / "Cargo.toml").read_text()
    cargo = replaced(r'(\[workspace\.package\][^\[]*^version = ")[^"]*', rf"\g<1>{version}", cargo,
                     "Cargo.toml has no [workspace.package] with a version")
    cargo = replaced(r'^(ncu-report = \{ version = ")[^"]*', rf"\g<1>{version}", cargo,
                     "Cargo.toml has no dependency ncu-report")
    changelog = replaced(rf"^(## \[{re.escape(version)}\] - )(?:unreleased|\d{{4}}-\d\d-\d\d)$", rf"\g<1>{day}",
                         (ROOT / "CHANGELOG.md").read_text(),
                         f"CHANGELOG.md has no heading '## [{version}] - unreleased'")
    found = {ROOT / "Cargo.toml": cargo, ROOT / "CHANGELOG.md": changelog}
    for name in ("Cargo.lock", "fuzz/Cargo.lock"):
        lock = replaced(r'^(name = "(?:sparsek-gate|ncu-report)"\nversion = ")[^"]*', rf"\g<1>{version}",
                        (ROOT / name).read_text(), f"{name} has no package of this repository")
        found[ROOT / name] = lock
    return found


def published(changed: dict[Path, str], owner: str) -> None:
    """Adds to the changed files those that name the owner or the time before the first release."""
    for file in sorted({file for pattern in PAGES for file in ROOT.glob(pattern)}):
        text = changed.get(file, file.read_text())
        text = LINE.sub("", text)
        for name, before, after in BEFORE:
            if ROOT / name == file:
                text = text.replace(before, after)
        changed[file] = text.replace("OWNER/sparsek-gate", f"{owner}/sparsek-gate")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("version")
    arguments.add_argument("--owner", required=True, help="the account on GitHub that publishes it")
    arguments.add_argument("--day", default=datetime.datetime.now(datetime.UTC).date().isoformat())
    given = arguments.parse_args()
    if not re.fullmatch(r"\d+\.\d+\.\d+", given.version):
        sys.exit(f"ci/release/prepare.py: {given.version} is not a version of three numbers")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]*", given.owner):
        sys.exit(f"ci/release/prepare.py: {given.owner} is not the name of an account")
    changed = versions(given.version, given.day)
    published(changed, given.owner)
    for file, text in changed.items():
        if text != file.read_text():
            file.write_text(text)
            print(file.relative_to(ROOT))


if __name__ == "__main__":
    main()
