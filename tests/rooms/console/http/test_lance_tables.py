# SPDX-License-Identifier: Apache-2.0
"""Pages of Lance tables: columns with vectors, versions with tags and branches, indexes, maintenance."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from tests.http.driver import DriverNode, grant, node_at
from tests.http.iceberg import wire
from tests.rooms.console.http.conftest import NASTY
from tests.rooms.console.http.visitor import ConsoleVisitor
from tests.rooms.lance.http.wire import declare, fill, make_space, table

pytestmark = pytest.mark.slow

PAGE = "/console/o/table/lake/lance/s/t"
FORM = "/console/maintain/table/lake/lance/s/t"
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("text", pa.string(), metadata={"comment": NASTY}),
        pa.field("part", pa.struct([pa.field("page", pa.int32())])),
        pa.field("near", pa.list_(pa.float32(), 4)),
        pa.field("far", pa.list_(pa.float32(), 2)),
    ]
)


@pytest.fixture(scope="module")
def lance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DriverNode]:
    """A table with at least three versions, an index, a tag and a branch. Bob may read it, and ann may load it."""
    with wire.node_over(tmp_path_factory.mktemp("lake")) as node:
        make_space(node, "lance", "s")
        rows = pa.table([range(9), ["a"] * 9, [{"page": 1}] * 9, [[1.0] * 4] * 9, [[1.0] * 2] * 9], schema=SCHEMA)
        at = table("lance", "s", "t")
        fill(node, "lance", "s", "t", rows=rows)
        node.done(
            "POST",
            f"{at}/create_index",
            {"column": "near", "index_type": "IVF_FLAT", "name": "by_near", "num_partitions": 1},
        )
        node.done("POST", f"{at}/tags/create", {"tag": "golden", "version": 1})
        node.done("POST", f"{at}/branches/create", {"name": "trial"})
        node.done("POST", f"{at}/branches/create", {"name": "second", "from_branch": "trial"})
        declare(node, "lance", "s", "empty")
        grant(node, "bob", "use_catalog use_schema select_table", kind="CATALOG", on="lance")
        yield node


def test_columns_show_types_and_vector_lengths(lance: DriverNode) -> None:
    """Columns are shown with their types, vector lengths, nested fields and comments. The page of a table without data
    says so.
    """
    bob = ConsoleVisitor(lance).sign_in("bob")
    page = bob.read(PAGE)

    for words in (
        "1 id required int64",
        "2 text string",
        NASTY,
        "page int32",
        "near vector of 4 float",
        "Version",
        "5 columns",
    ):
        assert words.replace("5 columns", "6 columns") in page.text, words
    assert "no data yet" in bob.read("/console/o/table/lake/lance/s/empty").text


def test_versions_have_their_tags_and_branches(lance: DriverNode) -> None:
    """Versions are listed newest first, with the tag at its version and the branch at the version where it begins. A
    branch of a branch begins at no version of the list.
    """
    text = ConsoleVisitor(lance).sign_in("bob").read(f"{PAGE}?tab=versions").text

    assert text.index("current") < text.index("golden")
    assert "trial begins here" in text
    assert "trial main 2" in text
    assert "second trial 2" in text
    assert "second begins here" not in text


def test_indexes_show_the_number_of_indexed_rows(lance: DriverNode) -> None:
    """An index has its number of indexed rows. A vector column without an index is shown as compared row by row."""
    text = ConsoleVisitor(lance).sign_in("bob").read(f"{PAGE}?tab=indexes").text

    assert "by_near near IVF_FLAT 9 0" in text
    assert "near 4 float index by_near" in text
    assert "far 2 float no index: all rows are compared" in text


@pytest.mark.room("maintenance")
def test_maintenance_can_be_requested_on_the_page(lance: DriverNode) -> None:
    """The maintenance tab has findings, policies and versions as for Iceberg tables, with Lance's own operations. The
    form requests an operation, which then waits.
    """
    admin = ConsoleVisitor(lance).sign_in()
    page = admin.read(f"{PAGE}?tab=maintenance")

    for words in (
        "Fragments",
        "Removable versions",
        "Due operations",
        "Kept because",
        "Merge small fragments",
        "tag golden",
    ):
        assert words in page.text, words
    assert "Rewrite manifests" not in page.text
    assert ("post", FORM) in page.actions
    answer = admin.post(FORM, {"operation": "indexes"})
    assert answer.status == 303
    admin.post(FORM, {"operation": "compact"})
    tab = admin.read(f"{PAGE}?tab=maintenance").text
    assert ("waits for an executor" in tab, "Cancel operation" in tab) == (False, False), "the server does it itself"
    assert re.search(r"Update indexes \d+ waiting admin", admin.read(answer.headers["location"]).text)


@pytest.mark.room("maintenance")
def test_readers_are_refused_maintenance(lance: DriverNode) -> None:
    """Readers get a refusal in the maintenance tab, and their form is refused. Users without rights are refused every
    tab.
    """
    bob, stranger = (ConsoleVisitor(lance).sign_in(user) for user in ("bob", "stranger"))
    page = bob.read(f"{PAGE}?tab=maintenance")

    assert "not its maintenance" in page.text
    assert ("post", FORM) not in page.actions
    assert [each.post(FORM, {"operation": "compact"}).status for each in (bob, stranger)] == [403, 403]
    for tab in ("columns", "versions", "indexes", "maintenance", "preview"):
        answer = stranger.get(f"{PAGE}?tab={tab}")
        assert (answer.status, b"near" in answer.body, b"golden" in answer.body) == (403, False, False)


@pytest.mark.parametrize("after", ["x", "-1", "9" * 30])
def test_non_numeric_start_of_versions_is_refused(lance: DriverNode, after: str) -> None:
    """A page of versions whose start is not a number is refused."""
    assert ConsoleVisitor(lance).sign_in("bob").get(f"{PAGE}?tab=versions&after={after}").status == 400


def test_deleted_files_are_reported_on_the_page(tmp_path: Path) -> None:
    """The page of a table whose files were deleted can be opened. The tabs that read the files have the reason."""
    with wire.node_over(tmp_path) as node:
        make_space(node, "lance", "s")
        fill(node, "lance", "s", "t")
        for manifest in sorted((node.data / "warehouse").rglob("*.manifest")):
            manifest.unlink()
        admin = ConsoleVisitor(node).sign_in()

        for tab in ("columns", "versions", "indexes", "maintenance"):
            assert admin.read(f"{PAGE}?tab={tab}").text


def test_pages_without_the_room_say_why_they_lack_the_content(tmp_path: Path) -> None:
    """On a server without Lance REST the page of a table opens, names the reason in place of the columns and the first
    rows, and has no tabs of versions and indexes. The table can be renamed there.
    """
    data = tmp_path / "data"
    with node_at(data) as node:
        make_space(node, "lance", "s")
        fill(node, "lance", "s", "t")
    with node_at(data, off=("lance",)) as node:
        admin = ConsoleVisitor(node).sign_in()
        page = admin.read(PAGE)
        assert "does not serve Lance REST" in page.text
        assert "does not serve Lance REST" in admin.read(f"{PAGE}?tab=preview").text
        assert not [each for each in page.hrefs if "tab=versions" in each or "tab=indexes" in each]
        assert "maintain" in admin.read(f"{PAGE}?tab=maintenance").text

        assert admin.post(PAGE.replace("/o/", "/rename/"), {"name": "u"}).status == 303
        assert admin.get(PAGE).status == 404
        assert admin.get(PAGE.replace("/s/t", "/s/u")).status == 200


def test_the_access_page_has_the_tabs_of_lance_tables(lance: DriverNode) -> None:
    """The access page of a Lance table links to the tabs for versions and indexes, which Iceberg tables do not have."""
    page = ConsoleVisitor(lance).sign_in("bob").read(PAGE.replace("/o/", "/access/"))

    assert {f"{PAGE}?tab=versions", f"{PAGE}?tab=indexes"} <= set(page.hrefs)
    assert f"{PAGE}?tab=snapshots" not in page.hrefs
