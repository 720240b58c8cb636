"""Prepares the pages of the site in a folder, for the generator.

    python3 ci/site/stage.py FOLDER

README.md is the first page, docs/README.md names the others in their order. What these link to is
copied to the same place, so that every relative link is right on the site as it is in the repository.
"""

import json
import re
import shutil
import sys
from pathlib import Path

from latex2mathml.converter import convert

ROOT = Path(__file__).resolve().parents[2]
CONTENTS = ROOT / "docs/README.md"

FENCE = re.compile(r"^(```+)([\w-]*)[^\n]*\n(.*?)^\1$", re.M | re.S)
CODE = re.compile(r"(`+)(?:.(?!\1))*.?\1", re.S)
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
BLOCK_MATH = re.compile(r"\$\$(.+?)\$\$", re.S)
INLINE_MATH = re.compile(r"(?<![\w$\\])\$([^$\n]+?)\$(?![\w$])")
ENTRY = re.compile(r"^\* \[([^\]]+)\]\(([^)#]+)\)", re.M)
HIDDEN = re.compile(r"<!--.*?-->", re.S)


def local(target: str) -> bool:
    """Whether a link leads to a file of the repository."""
    return not re.match(r"[a-z]+:|#", target)


def apart(text: str, pattern: re.Pattern[str]) -> list[tuple[bool, str]]:
    """A text in parts: whether the part matches, and the part."""
    parts, end = [], 0
    for found in pattern.finditer(text):
        parts += [(False, text[end : found.start()]), (True, found.group())]
        end = found.end()
    return [*parts, (False, text[end:])]


def with_math(text: str) -> str:
    """Formulas as MathML, which a browser shows without a script."""
    text = BLOCK_MATH.sub(lambda found: convert(found[1].strip(), display="block"), text)
    return INLINE_MATH.sub(lambda found: convert(found[1].strip()), text)


def without_folders(text: str, page: Path) -> str:
    """Links to folders as plain words: a site has no page for them."""

    def plain(found: re.Match[str]) -> str:
        target = found[3].split("#")[0]
        is_folder = local(found[3]) and (page.parent / target).is_dir()
        return found[2] if is_folder and not found[1] else found[0]

    return LINK.sub(plain, text)


def rendered(page: Path) -> str:
    """A page as the generator reads it."""
    text = HIDDEN.sub("", page.read_text())
    parts = []
    for is_block, block in apart(text, FENCE):
        if is_block:
            # The generator knows only the language behind a fence.
            parts.append(FENCE.sub(lambda f: f"{f[1]}{f[2]}\n{f[3]}{f[1]}", block))
            continue
        for is_code, part in apart(block, CODE):
            parts.append(part if is_code else with_math(part))
    return without_folders("".join(parts), page)


def linked(page: Path) -> list[Path]:
    """The files of the repository that a page links to."""
    prose = "".join(part for is_block, part in apart(page.read_text(), FENCE) if not is_block)
    prose = "".join(part for is_code, part in apart(prose, CODE) if not is_code)
    targets = [found[3].split("#")[0] for found in LINK.finditer(prose)]
    targets = [target for target in targets if local(target) and target]
    files = [(page.parent / target).resolve() for target in targets]
    return [file for file in files if file.is_file() and file.is_relative_to(ROOT)]


def staged(folder: Path) -> None:
    """Writes all pages, and copies what they link to."""
    waiting = [ROOT / "README.md", CONTENTS, *sorted((ROOT / "docs").iterdir())]
    seen: set[Path] = set()
    while waiting:
        file = waiting.pop()
        if file in seen or not file.is_file():
            continue
        seen.add(file)
        place = folder / file.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix == ".md":
            place.write_text(rendered(file))
            waiting += linked(file)
        else:
            shutil.copyfile(file, place)


def navigation() -> list[object]:
    """The lists of the contents, under their headings."""
    nav: list[object] = [{"Overview": "README.md"}]
    _, *sections = re.split(r"^## ", CONTENTS.read_text(), flags=re.M)
    for section in sections:
        heading, body = section.split("\n", 1)
        pages = [{title: f"docs/{target}"} for title, target in ENTRY.findall(body)]
        nav.append({heading.strip(): pages})
    nav.append({"Changes": "CHANGELOG.md"})
    return nav


def main(folder: Path) -> None:
    staged(folder / "pages")
    settings = {
        "site_name": "sparsek-gate",
        "site_description": "Gate CUDA kernels in CI on hardware counters",
        "docs_dir": "pages",
        "site_dir": "site",
        "use_directory_urls": False,
        "nav": navigation(),
        "theme": {
            "name": "material",
            # Of the reader's own system: nothing is loaded from another host.
            "font": False,
            "features": [
                "navigation.sections",
                "navigation.footer",
                "content.code.copy",
                "search.highlight",
            ],
            "palette": [
                {"media": "(prefers-color-scheme: light)", "scheme": "default"},
                {"media": "(prefers-color-scheme: dark)", "scheme": "slate"},
            ],
        },
        "plugins": ["search"],
        "extra": {"generator": False},
        "markdown_extensions": [
            "tables",
            "attr_list",
            "md_in_html",
            {"toc": {"permalink": True}},
            "pymdownx.superfences",
            "pymdownx.highlight",
        ],
        "extra_css": ["site.css"],
    }
    shutil.copyfile(ROOT / "ci/site/site.css", folder / "pages/site.css")
    # JSON is YAML.
    (folder / "mkdocs.yml").write_text(json.dumps(settings, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
