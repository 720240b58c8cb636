"""The configuration of the repository with a key a line, for `sed`:

    python3 tests/gpu/lines.py <config.toml >lines.toml

Each metric and each variant is a table of its own, with an empty line behind it, and defaults that
tests/gpu/run.sh edits are stated. Comments are left out.
"""

import re
import sys

# What is a table of its own, in which table.
OWN = [(r"metric|static", r"\w+"), (r"suite\.\w+", r"variant\.\w+"), (r"toolchain", r"pins")]
DEFAULTS = {"profile": ["launches = 20", "processes = 4", 'cache_control = "all"', "timeout_s = 120"]}
VERIFY = "[verify]\ntimeout_s = 60\n"


def parts(text: str) -> list[str]:
    """The pairs of an inline table: its text is cut at the commas that are in nothing else."""
    found, depth, quoted = [""], 0, False
    for letter in text:
        quoted ^= letter == '"'
        depth += 0 if quoted else (letter in "[{") - (letter in "]}")
        if letter == "," and depth == 0 and not quoted:
            found.append("")
        else:
            found[-1] += letter
    return [part.strip() for part in found if part.strip()]


def main() -> None:
    table, tables = "", {}
    for line in sys.stdin.read().splitlines():
        if header := re.fullmatch(r"\[([\w.]+)\]", line):
            table = header[1]
            tables[table] = list(DEFAULTS.get(table, []))
            continue
        if not line or line.startswith("#"):
            continue
        own = [re.match(f"({key})(?:\\.(\\w+))? = (.*)$", line) for where, key in OWN if re.fullmatch(where, table)]
        if not own or not own[0]:
            tables[table].append(line)
            continue
        name, key, value = own[0].groups()
        inner = tables.setdefault(f"{table}.{name}", [])
        inner += [f"{key} = {value}"] if key else parts(value.strip()[1:-1])
    for name, lines in tables.items():
        if lines:
            print(f"[{name}]", *lines, "", sep="\n")
    print(VERIFY)


main()
