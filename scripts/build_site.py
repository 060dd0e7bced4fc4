# SPDX-License-Identifier: Apache-2.0
"""Build the documentation site: `make site`, and the hook that builds the wheel.

Usage: build_site.py [FILE]. Writes one compressed ZIP file with a page for each Markdown file of docs/ and for those at
the root, a page for each OpenAPI document, and an index for the search in the browser. Pages name nothing outside the
site except links that a reader follows. The same sources give the same bytes. Needs markdown-it-py.
"""

from __future__ import annotations

import io
import json
import lzma
import os
import re
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Final, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT: Final = Path(__file__).parents[1]
OUTPUT: Final = ROOT / "build" / "documentation.zip.xz"
TOP: Final = {"README.md": "readme", "ARCHITECTURE.md": "architecture", "CONTRIBUTING.md": "contributing"}
MORE: Final = {"SECURITY.md": "security", "CHANGELOG.md": "changelog", "examples/penguins/README.md": "penguins"}
"""Pages outside of docs/ and their names; those that a source distribution lacks are left out."""
MENU: Final = (
    ("index.html", "All pages"),
    ("readme.html", "Begin"),
    ("reference/cli.html", "Command line"),
    ("reference/settings.html", "Settings"),
    ("api/index.html", "API"),
)
TEXT_MAX: Final = 400
"""Characters of a section in the index of the search."""
DAY: Final = (1980, 1, 1, 0, 0, 0)
METHODS: Final = ("get", "head", "post", "put", "patch", "delete")


class Section(NamedTuple):
    """A section of a page for the search: URL with anchor, title, and the beginning of its text."""

    url: str
    title: str
    text: str


class Page(NamedTuple):
    """A page: its URL below the site's root, title, body in HTML, and its sections."""

    url: str
    title: str
    body: str
    sections: tuple[Section, ...]


def sources(root: Path) -> dict[Path, str]:
    """Return the URL of each Markdown file of the site."""
    docs = root / "docs"
    urls = {file: file.relative_to(docs).with_suffix(".html").as_posix() for file in sorted(docs.rglob("*.md"))}
    urls = {file: re.sub(r"README\.html$", "index.html", url) for file, url in urls.items()}
    return urls | {root / name: f"{url}.html" for name, url in {**TOP, **MORE}.items() if (root / name).is_file()}


def anchor_of(heading: str) -> str:
    """Return the anchor of a heading, as GitHub spells it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def link_of(target: str, file: Path, urls: Mapping[Path, str]) -> str | None:
    """Return the link of a page's target in the site; None for a file that is not part of it."""
    path, mark, anchor = target.partition("#")
    if re.match(r"[a-z]+:", target):
        return target
    if not path:
        return target
    named = (file.parent / path).resolve()
    if named not in urls:
        return None
    return os.path.relpath(urls[named], Path(urls[file]).parent) + mark + anchor


def rewrite_links(tokens: Sequence[Token], file: Path, urls: Mapping[Path, str]) -> None:
    """Point links at pages of the site. Links to files outside of it and pictures become plain text."""
    for token in tokens:
        rewrite_links(token.children or (), file, urls)
        if token.type == "image":
            token.type, token.tag, token.children = "text", "", None
        elif token.type == "link_open":
            link = link_of(str(token.attrs["href"]), file, urls)
            token.attrs = {} if link is None else {"href": link}


def page_of(file: Path, urls: Mapping[Path, str]) -> Page:
    """Render a Markdown file."""
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(file.read_text(encoding="utf-8"))
    rewrite_links(tokens, file, urls)
    url, title, anchor = urls[file], "", ""
    texts: dict[tuple[str, str], list[str]] = {}
    for number, token in enumerate(tokens):
        if token.type == "inline" and tokens[number - 1].type == "heading_open":
            heading = "".join(child.content for child in token.children or ())
            anchor = anchor_of(re.sub(r"[`*]", "", heading))
            tokens[number - 1].attrs["id"] = anchor
            title = title or heading
            texts[anchor, heading] = []
        elif token.type == "inline" and texts:
            next(reversed(texts.values())).append("".join(child.content for child in token.children or ()))
    sections = tuple(
        Section(f"{url}#{anchor}", heading if heading == title else f"{title}: {heading}", " ".join(parts)[:TEXT_MAX])
        for (anchor, heading), parts in texts.items()
    )
    return Page(url, title, str(markdown.renderer.render(tokens, markdown.options, {})), sections)


def details_of(title: str, value: object) -> str:
    """Return a folded part with JSON."""
    text = escape(json.dumps(value, indent=2, ensure_ascii=False))
    return f"<details><summary>{escape(title)}</summary><pre><code>{text}</code></pre></details>"


def operation_html(method: str, path: str, operation: Mapping[str, object]) -> str:
    """Return one operation: method, path, summary, and its parameters, body and answers, folded."""
    summary = str(operation.get("summary", operation.get("operationId", "")))
    parts = [f"<p>{escape(str(operation['description']))}</p>"] if "description" in operation else []
    keys = ("parameters", "requestBody", "responses")
    parts += [details_of(key, operation[key]) for key in keys if key in operation]
    head = f"<code>{method.upper()}</code> <code>{escape(path)}</code> {escape(summary)}"
    return (
        "<details"
        f' id="{escape(str(operation.get("operationId", "")))}"><summary>{head}</summary>{"".join(parts)}</details>'
    )


def api_page(file: Path) -> Page:
    """Render an OpenAPI document: its operations in the order of the paths, then the schemas."""
    document = json.loads(file.read_text(encoding="utf-8"))
    url, title = f"api/{file.stem}.html", str(document["info"]["title"])
    parts, sections = [f"<h1>{escape(title)}</h1>"], []
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                operation = item[method]
                parts.append(operation_html(method, path, operation))
                words = str(operation.get("summary", ""))
                anchor = operation.get("operationId", "")
                sections.append(Section(f"{url}#{anchor}", f"{method.upper()} {path}", words[:TEXT_MAX]))
    schemas = document.get("components", {}).get("schemas", {})
    parts.append("<h2>Schemas</h2>")
    parts += [details_of(name, schema) for name, schema in schemas.items()]
    return Page(url, title, "\n".join(parts), tuple(sections))


def api_index(pages: Iterable[Page]) -> Page:
    """Return the page that lists the API's documents."""
    rows = "".join(f'<li><a href="{Path(page.url).name}">{escape(page.title)}</a></li>' for page in pages)
    body = (
        "<h1>API</h1><p>Every operation of every protocol, as the server's"
        f" <code>/openapi.json</code>.</p><ul>{rows}</ul>"
    )
    return Page("api/index.html", "API", body, ())


def document_of(page: Page) -> str:
    """Return the whole HTML document of a page."""
    root = "../" * page.url.count("/")
    menu = "".join(f'<a href="{root}{url}">{title}</a>' for url, title in MENU)
    return f"""<!doctype html>
<html lang="en" data-root="{root or "./"}">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{escape(page.title)} – Limnos</title>
<link rel="stylesheet" href="{root}site.css"><script src="{root}site.js" defer></script></head>
<body>
<header><a class="home" href="{root}index.html">Limnos</a><nav>{menu.replace("</a><a", "</a> · <a")}</nav>
<form role="search"><input id="search" type="search" placeholder="Search" aria-label="Search" autocomplete="off"><ul id="results"></ul></form></header>
<main>
{page.body}</main>
</body>
</html>
"""


def files_of(root: Path) -> Iterator[tuple[str, bytes]]:
    """Yield every file of the site."""
    urls = sources(root)
    pages = [page_of(file, urls) for file in urls]
    api_pages = [api_page(file) for file in sorted((root / "openapi").glob("*.json"))]
    pages += [*api_pages, api_index(api_pages)]
    for page in pages:
        yield page.url, document_of(page).encode()
    sections = [section._asdict() for page in pages for section in page.sections]
    yield "search.json", json.dumps(sections, ensure_ascii=False, separators=(",", ":")).encode()
    for file in sorted((root / "scripts" / "site").iterdir()):
        yield file.name, file.read_bytes()


def build(root: Path, output: Path) -> int:
    """Write the site into a ZIP file, compressed as a whole; returns the number of its files.

    The pages are stored in it and compressed together: they are alike, and each alone takes twice the space.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    count, archive_file = 0, io.BytesIO()
    with zipfile.ZipFile(archive_file, "w", zipfile.ZIP_STORED) as archive:
        for name, body in files_of(root):
            entry = zipfile.ZipInfo(name, DAY)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, body)
            count += 1
    text = {"id": lzma.FILTER_LZMA2, "preset": lzma.PRESET_EXTREME | 9, "lc": 4, "lp": 0, "pb": 0}
    output.write_bytes(lzma.compress(archive_file.getvalue(), filters=[text]))
    return count


def main(arguments: Sequence[str]) -> int:
    """Build the site and print its size."""
    output = Path(arguments[0]) if arguments else OUTPUT
    count = build(ROOT, output)
    sys.stdout.write(f"{output}: {count} files, {output.stat().st_size // 1000:,} KB\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
