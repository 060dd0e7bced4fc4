# SPDX-License-Identifier: Apache-2.0
"""The lineage page: steps, hidden objects, expanded nodes, cycles, and a graph of 2,000 nodes."""

from __future__ import annotations

import pytest

from limnos.rooms.console.http.pictures import NODES_MAX
from tests.http.driver import OWN, DriverNode, grant
from tests.rooms.console.http.conftest import ICEBERG, add_table
from tests.rooms.console.http.visitor import ConsoleVisitor, PageReader, text_of
from tests.rooms.pipelines.http.test_lineage import dataset, event, link

PAGE = "/console/lineage/table/lake/main/raw/flights"


def tell(node: DriverNode, *pairs: tuple[str, str]) -> None:
    """Report edges between tables of `main.raw`, or from outside datasets."""
    events = [event(dataset(f"main.raw.{target}"), _source(source), job=f"from {source}") for source, target in pairs]
    send(node, events)


def send(node: DriverNode, events: list[dict]) -> None:
    """Report events, all of which must be stored."""
    answer = node.ask("POST", f"{OWN}/metalakes/lake/lineage", events)
    assert answer.status == 201, answer.body
    assert answer.json()["left_out"] == []


def _source(name: str) -> dict:
    return dataset(name, namespace="s3://elsewhere") if "/" in name else dataset(f"main.raw.{name}")


@pytest.fixture
def linked(lake: DriverNode) -> DriverNode:
    """The chain from a file over flights and clean to report, with a cycle between clean and flights."""
    for name in ("clean", "report"):
        add_table(lake, "raw", name)
    tell(lake, ("files/2026.csv", "flights"), ("flights", "clean"), ("clean", "report"), ("clean", "flights"))
    return lake


def test_number_of_steps_bounds_the_graph(linked: DriverNode) -> None:
    """One step shows the direct neighbors, three steps show all objects of the chain, as a picture and as a list."""
    admin = ConsoleVisitor(linked).sign_in()

    near, far = admin.read(PAGE), admin.read(f"{PAGE}?depth=3")

    assert "report" not in near.text.partition("As a list")[2].partition("Show one more step")[0]
    for words in ("files/2026.csv", "s3://elsewhere", "main.raw.report", "Comes from 2 directly, feeds 1 directly"):
        assert words in far.text
    assert far.tags.count("rect") == 4
    assert ("class", "line dashed back") in far.attributes


def test_open_parameter_adds_steps_of_another_node(linked: DriverNode) -> None:
    """`open` shows the step around another object; a name that does not exist adds nothing."""
    admin = ConsoleVisitor(linked).sign_in()

    assert "main.raw.report" in admin.read(f"{PAGE}?open=main.raw.clean").text
    assert admin.read(f"{PAGE}?open=main.raw.nothing,main.raw").tags.count("rect") == 3


def test_hidden_objects_have_no_name(linked: DriverNode) -> None:
    """A user with rights on flights alone sees clean as a hidden node, and nothing beyond it."""
    grant(linked, "ana", "use_catalog", kind="CATALOG", on="main")
    grant(linked, "ana", "use_schema", kind="SCHEMA", on="main.raw")
    grant(linked, "ana", "select_table", kind="TABLE", on="main.raw.flights")

    page = ConsoleVisitor(linked).sign_in("ana").read(f"{PAGE}?depth=10")

    assert "an object that you may not see" in page.text
    assert "clean" not in page.text
    assert "report" not in page.text
    assert "files/2026.csv" in page.text


def test_lineage_needs_the_right_to_load_the_table(linked: DriverNode) -> None:
    """The lineage page is 403 for users who may not load the table."""
    grant(linked, "ana", "use_catalog use_schema", kind="CATALOG", on="main")

    assert ConsoleVisitor(linked).sign_in("ana").get(PAGE).status == 403


def test_table_page_links_to_the_lineage_page(linked: DriverNode) -> None:
    """The table's page links to the lineage page, which has a URL of its own."""
    answer = ConsoleVisitor(linked).sign_in().get("/console/o/table/lake/main/raw/flights?tab=lineage")

    assert (answer.status, answer.headers["location"]) == (303, PAGE)


def test_page_for_two_thousand_sources_is_bounded(lake: DriverNode) -> None:
    """For a table with 2,000 sources, the picture has a limited number of nodes, the list has 500 lines, and the page
    is smaller than 512 kB. The page counts the omitted ones.
    """
    sources = [_source(f"files/{number}.csv") for number in range(2_000)]
    target = dataset("main.raw.flights")
    send(lake, [event(target, *sources[at : at + 100], job=f"job {at}") for at in range(0, 2_000, 100)])

    answer = ConsoleVisitor(lake).sign_in().get(PAGE)
    page = ConsoleVisitor(lake).sign_in().read(PAGE)

    assert len(answer.body) < 512_000
    assert page.tags.count("rect") == NODES_MAX
    assert f"{2_001 - NODES_MAX} more are not drawn" in page.text
    assert "The first 500 of 2000" in page.text


def test_lineage_page_has_the_tables_tabs(linked: DriverNode) -> None:
    """The lineage page has the table's tabs, suggests its columns, and labels a file with the end of its path."""
    page = ConsoleVisitor(linked).sign_in().read(PAGE)

    assert "/console/o/table/lake/main/raw/flights?tab=snapshots" in page.hrefs
    assert ("value", "place") in page.attributes
    assert "2026.csv" in page.words


def restrict(node: DriverNode, table: str) -> None:
    """Let ana read a table of `main.raw`, with its column `id` masked."""
    grant(node, "ana", "use_catalog", kind="CATALOG", on="main")
    grant(node, "ana", "use_schema", kind="SCHEMA", on="main.raw")
    grant(node, "ana", "select_table", kind="TABLE", on=f"main.raw.{table}")
    fields = {
        "change": "set",
        "name": "private",
        "column": "id",
        "mask": "replace-with-null",
        "whom": "user",
        "named": "ana",
    }
    page = f"/console/restrictions/table/lake/main/raw/{table}"
    assert ConsoleVisitor(node).sign_in().post(page, fields).status == 303


def _queries(page: PageReader) -> list[str]:
    """Return the links of a page to a query in the worksheet."""
    return [href for href in page.hrefs if "/worksheet?text=" in href]


@pytest.mark.room("sqlpp")
def test_note_on_a_restricted_table_reveals_no_column_name(linked: DriverNode) -> None:
    """The lineage tab of a restricted table has a note in place of the graph, without any column name, for existing and
    missing columns. It offers neither a request for access nor a query, which SQL++ would refuse.
    """
    restrict(linked, "flights")
    ana = ConsoleVisitor(linked).sign_in("ana")

    for answer in (ana.get(PAGE), ana.get(f"{PAGE}?column=id&depth=3"), ana.get(f"{PAGE}?column=nothing")):
        assert answer.status == 200
        page = PageReader(text_of(answer))
        assert page.faults == []
        assert "A read restriction on this object applies to you" in page.text
        assert not {"place.town", "clean", "files/2026.csv", "nothing"} & set(page.text.split())
        assert 'value="place"' not in text_of(answer)
        assert not [action for _, action in page.actions if "/ask/" in action]
        assert not _queries(page)
    table = "/console/o/table/lake/main/raw/flights"
    assert "place" in ana.read(table).text
    assert not _queries(ana.read(table))
    assert _queries(ConsoleVisitor(linked).sign_in().read(table))


def test_former_columns_of_a_restricted_source_are_hidden(lake: DriverNode) -> None:
    """For a restricted source, the page shows names of its current columns but not of former ones; those are shown as
    the table alone.
    """
    fields = [
        {"id": number, "name": name, "required": False, "type": "long"} for number, name in ((1, "id"), (2, "pin"))
    ]
    add_table(lake, "raw", "source", {"type": "struct", "fields": fields})
    columns = {"id": [link("main.raw.source", "id")], "place": [link("main.raw.source", "pin")]}
    send(lake, [event(dataset("main.raw.flights"), dataset("main.raw.source"), columns=columns)])
    schema = {"type": "struct", "schema-id": 1, "fields": fields[:1]}
    updates = [{"action": "add-schema", "schema": schema}, {"action": "set-current-schema", "schema-id": -1}]
    lake.done("POST", f"{ICEBERG}/namespaces/raw/tables/source", {"requirements": [], "updates": updates})
    restrict(lake, "source")
    grant(lake, "ana", "select_table", kind="TABLE", on="main.raw.flights")
    admin, ana = ConsoleVisitor(lake).sign_in(), ConsoleVisitor(lake).sign_in("ana")

    assert "main.raw.source.pin" in admin.read(f"{PAGE}?column=place").text
    assert "main.raw.source.id" in ana.read(f"{PAGE}?column=id").text
    former = ana.read(f"{PAGE}?column=place").text
    assert "main.raw.source" in former
    assert "pin" not in former
