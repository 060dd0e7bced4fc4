# SPDX-License-Identifier: Apache-2.0
"""The rules of the documentation as pure functions over a folder of Markdown: paths in, complaints out.

test_pages.py applies them to docs/ and shows that each can fail. Knows nothing of pytest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

LINES_MAX = {"STATE.md": 200, "reference/benchmarks.md": 150}
COLUMNS_MAX = 120
SHELVES = ("start", "guides", "reference", "explain", "contribute", "decisions")
LINK = re.compile(r"\]\(([^)#:\s]*)(#[^)\s]*)?\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LIST_ITEM = re.compile(r"(?:[-*]|\d+\.) ")
SETTING = re.compile(r"`([a-z]+\.[a-z_]+)`, ([\d.,]+)(?: (MiB|KiB|s)\b)?")
UNITS = {"MiB": 1 << 20, "KiB": 1 << 10, "s": 1, "": 1}
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
RECORD = re.compile(r"# (\d{4}): (.+)\n\nStatus: (accepted|superseded by \d{4})[^\n]*\.\n")


def pages(docs: Path) -> list[Path]:
    """Every Markdown page below the folder."""
    return sorted(docs.rglob("*.md"))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub spells them."""
    headings = HEADING.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(page: Path) -> list[tuple[Path, str]]:
    """The relative links of a page outside code blocks: the file that each names, and its anchor or an empty string."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    return [((page.parent / target).resolve() if target else page, anchor[1:]) for target, anchor in LINK.findall(text)]


def dead_links(docs: Path) -> list[str]:
    """Relative links that name no file, or a heading that the file does not have."""
    anchors_of = cache(anchors)
    return [
        f"{page.relative_to(docs)}: {target.name}{'#' * bool(anchor)}{anchor}"
        for page in pages(docs)
        for target, anchor in links(page)
        if not target.exists() or (anchor and anchor not in anchors_of(target))
    ]


def unreached(docs: Path) -> list[str]:
    """Pages that no chain of links leads to from README.md of the folder."""
    reached = {docs / "README.md"}
    waiting = list(reached)
    for page in waiting:  # grows during the iteration
        linked_pages = {target for target, _ in links(page) if target.suffix == ".md" and target.exists()} - reached
        reached |= linked_pages
        waiting += sorted(target for target in linked_pages if target.is_relative_to(docs))
    return [str(page.relative_to(docs)) for page in pages(docs) if page not in reached]


def unlisted(docs: Path) -> list[str]:
    """Pages of a shelf that README.md of the folder does not list; decisions have an index of their own."""
    listed = {target for target, _ in links(docs / "README.md")}
    shelved = [page for page in pages(docs) if page.parent.name != "decisions"]
    return [str(page.relative_to(docs)) for page in shelved if page != docs / "README.md" and page not in listed]


def misplaced(docs: Path) -> list[str]:
    """Pages that are on no shelf, except README.md and STATE.md."""
    return [
        str(page.relative_to(docs))
        for page in pages(docs)
        if page.parent.name not in SHELVES and page.name not in {"README.md", "STATE.md"}
    ]


def long_pages(docs: Path) -> list[str]:
    """Pages that exceed their maximum number of lines."""
    counts = {
        name: (docs / name).read_text(encoding="utf-8").count("\n") for name in LINES_MAX if (docs / name).exists()
    }
    return [f"{name}: {count} lines" for name, count in counts.items() if count > LINES_MAX[name]]


def wide_lines(docs: Path) -> list[str]:
    """Lines of prose with more than 120 characters, in the folder and beside it; tables and code may be wider.

    Indented lines are code, except in a list.
    """
    complaints = []
    for page in [*pages(docs), *sorted(docs.parent.glob("*.md"))]:
        text = FENCE.sub(lambda block: "\n" * block[0].count("\n"), page.read_text(encoding="utf-8"))
        in_list = False
        for number, line in enumerate(text.splitlines(), start=1):
            if line and line[0] != " ":
                in_list = LIST_ITEM.match(line) is not None
            is_code = line.startswith("    ") and not in_list
            if len(line) > COLUMNS_MAX and not (is_code or line.startswith("|")):
                complaints.append(f"{page.name}:{number}: {len(line)} characters, {COLUMNS_MAX} at most")
    return complaints


def misnamed_records(folder: Path) -> list[str]:
    """Decision records without `# NNNN: Title` and a status line, or with another file name."""
    complaints = []
    for file in sorted(folder.glob("[0-9]*.md")):
        title_match = RECORD.match(file.read_text(encoding="utf-8"))
        if title_match is None:
            complaints.append(f"{file.name}: begins with `# NNNN: Title`, a blank line and `Status: accepted.`")
        elif file.name != f"{title_match[1]}-{_slug(title_match[2])}.md":
            complaints.append(f"{file.name}: {title_match[1]}-{_slug(title_match[2])}.md is the name by its title")
    return complaints


def paths_in(page: Path) -> list[str]:
    """Return the paths of files and folders that a page has in back-quotes, in order; single names and patterns are
    skipped.
    """
    paths = re.findall(r"`(\w[\w.-]*/[\w./-]+)`", page.read_text(encoding="utf-8"))
    endings = ("/", ".py", ".md", ".toml", ".txt", ".proto", ".json")
    return [each for each in paths if each.endswith(endings) and "NNNN" not in each]


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower().replace("'", "").replace("++", "pp")).strip("-")


def missing_classes(glossary: Path, package: Path) -> list[str]:
    """Classes that the glossary names after its words and that no module of the package defines."""
    named = re.findall(r"\(`([A-Z]\w+)`\) \|", glossary.read_text(encoding="utf-8"))
    defined = {
        name
        for module in package.rglob("*.py")
        for name in re.findall(r"^class (\w+)", module.read_text(encoding="utf-8"), re.MULTILINE)
    }
    return [name for name in named if name not in defined]


def wrong_defaults(page: Path, defaults: Mapping[str, object]) -> list[str]:
    """Settings whose default a page states wrongly, as in "`server.body_bytes_max`, 32 MiB", and unknown settings.

    `defaults` maps `section.key` to the default, in bytes, seconds or a count.
    """
    return [
        f"{page.name}: {name} is {defaults.get(name)}, not {number} {unit}".rstrip()
        for name, number, unit in SETTING.findall(page.read_text(encoding="utf-8"))
        if defaults.get(name) != float(number.replace(",", "").rstrip(".")) * UNITS[unit]
    ]
