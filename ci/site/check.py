"""Checks a built site: every link and anchor leads somewhere, nothing comes from another host, and
no Markdown is left in the text.

    python3 ci/site/check.py FOLDER
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser loads with a page, by element and attribute.
LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src")}
# A list, a table or a fence that the generator did not see.
RAW = re.compile(r"^\s*(?:\* |- |\|\s*:?-{2,}|```|\$\$)|\]\([\w./#-]+\)", re.M)


class Page(HTMLParser):
    """The anchors, links and loaded files of a page, and its text outside of code."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.text: list[str] = []
        self._quiet = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._quiet += tag in ("script", "style", "code", "pre", "title")
        for name, value in attrs:
            if value is None:
                continue
            if name in ("id", "name"):
                self.anchors.add(value)
            if (tag, name) in LOADED:
                self.loaded.append(value)
            elif name == "href":
                self.links.append(value)

    def handle_endtag(self, tag: str) -> None:
        self._quiet -= tag in ("script", "style", "code", "pre", "title")

    def handle_data(self, data: str) -> None:
        if not self._quiet:
            self.text.append(data)


def read(file: Path) -> Page:
    page = Page()
    page.feed(file.read_text())
    return page


def complaints(folder: Path) -> list[str]:
    """What is wrong, a line each."""
    pages = {file: read(file) for file in sorted(folder.rglob("*.html"))}
    if len(pages) < 20:
        return [f"{folder} has only {len(pages)} pages"]
    found = []
    for file, page in pages.items():
        name = file.relative_to(folder)
        for target in page.loaded + page.links:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                if target in page.loaded:
                    found.append(f"{name} loads {target} from another host")
                continue
            # The page for what is not found names all others from the top.
            start = folder if parts.path.startswith("/") else file.parent
            path = start / unquote(parts.path).lstrip("/") if parts.path else file
            path = path.resolve()
            if path.is_dir():
                path /= "index.html"
            if not path.is_file():
                found.append(f"{name} links to {target}, which is not there")
            elif parts.fragment and path in pages:
                anchor = unquote(parts.fragment)
                if anchor not in pages[path].anchors:
                    found.append(f"{name} links to {target}, and the page has no such anchor")
        found += [f"{name} shows Markdown: {raw}" for raw in RAW.findall("".join(page.text))]
    return found


def main(folder: Path) -> int:
    found = complaints(folder.resolve())
    for line in found:
        print(f"ci/site/check.py: {line}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
