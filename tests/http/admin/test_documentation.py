# SPDX-License-Identifier: Apache-2.0
"""The documentation site: built twice with the same bytes, complete, offline, and served as static files only."""

from __future__ import annotations

import io
import json
import lzma
import posixpath
import re
import zipfile
from pathlib import Path
from urllib.parse import unquote

import pytest

from limnos.http.admin import documentation
from scripts import build_site
from tests.http.driver import DriverNode

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
SIZE_MAX = 560 << 10


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of this tree."""
    file = tmp_path_factory.mktemp("site") / "documentation.zip.xz"
    build_site.build(ROOT, file)
    return file


@pytest.fixture
def served(site: Path, node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> DriverNode:
    """A node that has the site."""
    monkeypatch.setattr(documentation, "FILES", (site,))
    return node


def test_site_has_the_same_bytes_each_time_and_a_bounded_size(site: Path, tmp_path: Path) -> None:
    """Two builds are equal, because a release is reproducible; the size is bounded, because every wheel has it."""
    build_site.build(ROOT, tmp_path / "again.zip.xz")

    assert (tmp_path / "again.zip.xz").read_bytes() == site.read_bytes()
    assert site.stat().st_size <= SIZE_MAX


def test_every_page_and_document_is_in_the_site(site: Path) -> None:
    """Each Markdown file of docs/ has a page, and each OpenAPI document one with all of its operations."""
    with zipfile.ZipFile(io.BytesIO(lzma.decompress(site.read_bytes()))) as archive:
        names = set(archive.namelist())
        iceberg = archive.read("api/iceberg.html").decode()
    document = json.loads((ROOT / "openapi" / "iceberg.json").read_text(encoding="utf-8"))

    pages = [file.relative_to(ROOT / "docs").with_suffix(".html").as_posix() for file in (ROOT / "docs").rglob("*.md")]
    assert {re.sub(r"README\.html$", "index.html", page) for page in pages} <= names
    assert {f"api/{file.stem}.html" for file in (ROOT / "openapi").glob("*.json")} <= names
    assert all(f"<code>{path}</code>" in iceberg for path in document["paths"])


def test_links_of_the_site_lead_to_its_files(site: Path) -> None:
    """Each relative link of each page names a file of the site and an anchor in it; nothing else is loaded."""
    wrong, loaded = [], set()
    with zipfile.ZipFile(io.BytesIO(lzma.decompress(site.read_bytes()))) as archive:
        texts = {name: archive.read(name).decode() for name in archive.namelist()}
    for name, text in texts.items():
        if not name.endswith(".html"):
            continue
        loaded |= set(re.findall(r'<(?:link|script|img)[^>]*?(?:href|src)="([^"]+)"', text))
        for target, anchor in re.findall(r'<a [^>]*href="([^"#:]*)(?:#([^"]*))?"', text):
            page = posixpath.normpath(posixpath.join(posixpath.dirname(name), target)) if target else name
            if page not in texts or (anchor and f'id="{unquote(anchor)}"' not in texts[page]):
                wrong.append(f"{name}: {target}#{anchor}")

    assert wrong == []
    assert {posixpath.basename(each) for each in loaded} == {"site.css", "site.js"}
    assert not any(each.startswith(("http", "//")) for each in loaded)


def test_search_index_names_sections(site: Path) -> None:
    """Each section of the index leads to an anchor of a page."""
    with zipfile.ZipFile(io.BytesIO(lzma.decompress(site.read_bytes()))) as archive:
        sections = json.loads(archive.read("search.json"))
        texts = {name: archive.read(name).decode() for name in archive.namelist() if name.endswith(".html")}

    lost = [
        each["url"]
        for each in sections
        if f'id="{each["url"].partition("#")[2]}"' not in texts[each["url"].partition("#")[0]]
    ]
    assert lost == []
    assert any(each["title"] == "Granting rights: Presets" for each in sections)


def test_site_is_served_to_everybody_with_a_strict_policy(served: DriverNode) -> None:
    """Pages need no credential, run no inline script, and are not sent again while they are unchanged."""
    first = served.get("/docs", user=None)
    answer = served.get("/docs/start/analyst.html", user=None)
    again = served.get("/docs/start/analyst.html", user=None, if_none_match=answer.headers["etag"])

    assert (first.status, first.headers["location"]) == (303, "docs/index.html")
    assert served.get("/docs/", user=None).headers["location"] == "index.html"
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "default-src 'none'; script-src 'self';" in answer.headers["content-security-policy"]
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert not re.findall(r"<script(?![^>]*src=)|<style| style=| on\w+=\"", answer.body.decode())
    assert (again.status, again.body) == (304, b"")
    assert served.get("/docs/site.js", user=None).headers["content-type"] == "text/javascript; charset=utf-8"
    assert served.get("/docs/search.json", user=None).status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/docs/nope.html",
        "/docs/guides",
        "/docs/..%2f..%2fpyproject.html",
        "/docs/%2e%2e/README.html",
        "/docs/guides/..%2findex.html",
        "/docs/guides/%2e%2e",
        "/docs//etc/passwd",
        "/docs/site.js%00.html",
    ],
)
def test_names_outside_of_the_site_do_not_exist(served: DriverNode, path: str) -> None:
    """A path that is no member of the site's file is not found, however it is spelled."""
    answer = served.get(path, user=None)

    assert answer.status in {400, 404}
    assert b"<html" not in answer.body


def test_missing_site_is_not_found(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a checkout without the file, the answer names the command that builds it."""
    monkeypatch.setattr(documentation, "FILES", (Path("/nonexistent/documentation.zip.xz"),))

    answer = node.get("/docs/index.html", user=None)

    assert answer.status == 404
    assert "make site" in answer.body.decode()
