"""README.md for a page outside of the repository, such as PyPI's: every relative link is absolute.

    python3 ci/release/readme.py REPOSITORY REVISION <README.md

REPOSITORY is an address such as https://github.com/NAME/sparsek-gate. Links lead to the file, and
pictures to its content, at that revision.
"""

import re
import sys

FENCE = re.compile(r"^(```+).*?^\1$", re.M | re.S)
LINK = re.compile(r"(!?)(\[(?:[^\[\]]|\[[^\]]*\])*\])\((?![a-z]+:|#)([^)\s]+)\)")


def absolute(text: str, repository: str, revision: str) -> str:
    """The text, with every relative link outside of code made absolute."""

    def link(found: re.Match[str]) -> str:
        kind = "raw" if found[1] else "blob"
        return f"{found[1]}{found[2]}({repository}/{kind}/{revision}/{found[3]})"

    parts, end = [], 0
    for fence in FENCE.finditer(text):
        parts += [LINK.sub(link, text[end : fence.start()]), fence.group()]
        end = fence.end()
    return "".join([*parts, LINK.sub(link, text[end:])])


if __name__ == "__main__":
    sys.stdout.write(absolute(sys.stdin.read(), *sys.argv[1:]))
