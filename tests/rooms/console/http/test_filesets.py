# SPDX-License-Identifier: Apache-2.0
"""Pages of filesets: directories, files as text and rows, long lists in pages, refusals, and names and content with
markup.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from limnos.rooms.console.http import filesets
from tests.http.admin.catalog.test_filesets import NASTY, BrowsedFileset, on_disk
from tests.http.driver import API
from tests.rooms.console.http.visitor import ConsoleVisitor, PageReader, text_of

PAGE = "/console/o/fileset/lake/files/raw/f"


@pytest.fixture
def fileset(tmp_path: Path) -> Iterator[BrowsedFileset]:
    """A fileset on disk that bob may read."""
    with on_disk(tmp_path) as browsed_fileset:
        yield browsed_fileset


def bob(fileset: BrowsedFileset) -> ConsoleVisitor:
    """Bob, signed in."""
    return ConsoleVisitor(fileset.node).sign_in("bob")


def test_entries_link_to_pages_and_are_escaped(fileset: BrowsedFileset) -> None:
    """Each link of the list is a page of that directory or file, and no name or content becomes an element of the
    page.
    """
    visitor = bob(fileset)
    page = visitor.read(PAGE)
    links = [href for href in page.hrefs if "file=" in href or "directory=" in href]

    assert len(links) == 7
    for words in ("day=1/", "a.csv", "29 B", NASTY):
        assert words in page.text
    for href in links:
        inner = visitor.read(href)
        assert (inner.faults, inner.tags.count("script")) == ([], page.tags.count("script")), href
        assert "audit has a record" in inner.text or "deep.csv" in inner.text


def test_content_is_shown_as_table_text_or_size(fileset: BrowsedFileset) -> None:
    """Rows are shown as a table, HTML as text, and a binary file by its size. The breadcrumbs link to the parents."""
    visitor = bob(fileset)
    rows, html, binary, deep = (
        visitor.read(f"{PAGE}?file={quote(name)}") for name in ("a.csv", "c.html", "e.bin", "day=1/deep.csv")
    )

    assert "The first 2 rows" in rows.text
    assert "2 <b>Rome</b>" in rows.text
    assert "<script>alert(1)</script>" in html.text
    assert "binary file" in binary.text
    assert any("directory=day%3D1" in href for href in deep.hrefs)


def test_a_long_directory_has_pages(fileset: BrowsedFileset, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long directory is listed in pages that link to the next one. Together they have every entry once."""
    monkeypatch.setattr(filesets, "PAGE_SIZE", 2)
    visitor, at, names = bob(fileset), PAGE, []
    while at:
        page = visitor.read(at)
        names += [href for href in page.hrefs if "file=" in href or "directory=" in href]
        at = next((href for href in page.hrefs if "after=" in href), "")

    assert len(names) == len(set(names)) == 7


def test_refusals_are_shown_on_the_page(fileset: BrowsedFileset) -> None:
    """A user who may only write sees names without content. Paths outside of the fileset and missing files are refused;
    users without rights get 403.
    """
    eve, visitor = ConsoleVisitor(fileset.node).sign_in("eve"), bob(fileset)

    assert "a.csv" in eve.read(PAGE).text
    refused = eve.read(f"{PAGE}?file=a.csv").text
    assert ("READ_FILESET" in refused, "Oslo" in refused) == (True, False)
    outside = visitor.read(f"{PAGE}?directory=../x")
    assert "a.csv" not in outside.text
    assert ".." in outside.text
    assert "has no file gone" in visitor.read(f"{PAGE}?file=gone").text
    assert ConsoleVisitor(fileset.node).sign_in("ann").get(PAGE).status == 403


def test_each_named_location_can_be_selected(fileset: BrowsedFileset) -> None:
    """Each named location of a fileset can be selected, and its files are listed."""
    base = fileset.location.rpartition("/")[0]
    body = {
        "name": "two",
        "storageLocations": {"one": f"{base}/one", "two": f"{base}/two"},
        "properties": {"default-location-name": "one"},
    }
    fileset.node.done("POST", f"{API}/lake/catalogs/files/schemas/raw/filesets", body)
    Path(base.removeprefix("file://"), "two", "x.txt").write_text("x")
    visitor = ConsoleVisitor(fileset.node).sign_in()

    one = visitor.read("/console/o/fileset/lake/files/raw/two")
    (href,) = [each for each in one.hrefs if each.endswith("location=two")]

    assert "no file here" in one.text
    assert "x.txt" in visitor.read(href).text


def test_failed_preview_is_503_with_advice(fileset: BrowsedFileset) -> None:
    """A failed preview is answered with 503 and advice."""
    fileset.workers.dies = True

    answer = bob(fileset).get(f"{PAGE}?file=a.csv")

    assert answer.status == 503
    assert "worker process has ended" in PageReader(text_of(answer)).text
