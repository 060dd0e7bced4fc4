# SPDX-License-Identifier: Apache-2.0
"""Pages of namespaces and catalogs: their content in pages, which the script loads one after the other."""

from __future__ import annotations

from tests.http.driver import API, OWN, DriverNode
from tests.rooms.console.http.conftest import add_table
from tests.rooms.console.http.visitor import ConsoleVisitor, PageReader, text_of


def test_namespace_lists_its_content(admin: ConsoleVisitor) -> None:
    """Namespaces before tables, each with format, owner and comment."""
    page = admin.read("/console/o/namespace/lake/main/raw")

    assert page.text.index("nyc") < page.text.rindex("flights")
    for word in ("iceberg", "admin", "Flights of three airports", "as delivered"):
        assert word in page.text
    assert ("title", "Flights of three airports") in page.attributes


def test_list_continues_after_a_hundred_rows(admin: ConsoleVisitor) -> None:
    """A list continues after a hundred rows, as a page for browsers without scripts and as rows for the script."""
    for number in range(120):
        add_table(admin.node, "raw%1Fnyc", f"t{number:03}")
    first = admin.read("/console/o/namespace/lake/main/raw/nyc")
    (following,) = {href for href in first.hrefs if "?after=" in href and "/o/" in href}

    page, part = admin.read(following), PageReader(text_of(admin.get(following, x_limnos_part="1")))

    assert "t098" in first.text
    assert "t119" not in first.text.partition("Changed")[2]
    for each in (page, part):
        assert "t119" in each.text
    assert "html" not in part.tags
    assert part.faults == []


def test_catalog_shows_its_namespaces_and_provider(admin: ConsoleVisitor) -> None:
    """A catalog's page lists its namespaces and has its provider."""
    page = admin.read("/console/o/catalog/lake/main")

    assert "lakehouse-iceberg" in page.text
    assert "raw" in page.text


def test_properties_tab_lists_properties_by_name(admin: ConsoleVisitor) -> None:
    """The properties tab lists the namespace's properties by name."""
    assert "team north" in admin.read("/console/o/namespace/lake/main/raw?tab=properties").text


def test_tree_node_returns_only_its_children_to_the_script(admin: ConsoleVisitor) -> None:
    """The script gets only the children of a node of the tree. Without the script, the link opens the namespace's
    page.
    """
    part = PageReader(text_of(admin.get("/console/branch/namespace/lake/main/raw", x_limnos_part="1")))
    plain = admin.get("/console/branch/namespace/lake/main/raw")

    assert part.tags[0] == "li"
    assert "flights" in part.text
    assert plain.headers["location"] == "/console/o/namespace/lake/main/raw"


def test_invalid_list_position_is_an_error_page(admin: ConsoleVisitor) -> None:
    """An invalid position in a list is answered with an error page, not with a server error."""
    assert admin.get("/console/o/namespace/lake/main/raw?after=nothing").status == 400


def add_table_reader(node: DriverNode, user: str, *, path: list[str]) -> ConsoleVisitor:
    """Add a user with the preset `reader` on one table, signed in."""
    node.done("POST", f"{API}/lake/users", {"name": user})
    preset = {"change": "grant", "preset": "reader", "kind": "table", "path": path, "user": user}
    node.done("POST", f"{OWN}/metalakes/lake/access/presets", preset)
    return ConsoleVisitor(node).sign_in(user)


def test_reader_of_one_table_sees_the_names_on_the_way_to_it(lake: DriverNode) -> None:
    """A reader of one table in a nested namespace follows the links from the catalog to it: a namespace above has its
    name and the children on the way, and neither metadata nor other children.
    """
    for levels in (["corp"], ["corp", "crm"], ["corp", "crm", "eu"], ["corp", "hr"]):
        properties = {"comment": "of the board", "team": "north"}
        lake.done("POST", "/iceberg/v1/lake.main/namespaces", {"namespace": levels, "properties": properties})
    add_table(lake, "corp%1Fcrm%1Feu", "people")
    sam = add_table_reader(lake, "sam", path=["main", "corp", "crm", "eu", "people"])
    corp, crm = "/console/o/namespace/lake/main/corp", "/console/o/namespace/lake/main/corp/crm"

    page, inner = sam.read(corp), sam.read(crm)
    rows = PageReader(text_of(sam.get(corp, x_limnos_part="1")))
    table = sam.read(f"{crm.replace('namespace', 'table')}/eu/people")

    assert corp in sam.read("/console/o/catalog/lake/main").hrefs
    assert {corp, crm} <= set(table.hrefs)
    assert crm in page.hrefs
    assert f"{crm}/eu" in inner.hrefs
    assert "You may not load this namespace, but something in it" in page.text
    for each in (page, rows):
        assert "crm" in each.text
        for word in ("hr", "of the board", "north", "Owner admin"):
            assert word not in each.words
    assert not [href for href in page.hrefs if "tab=" in href or "/access/" in href]
    assert page.faults == inner.faults == []


def test_namespace_without_visible_content_stays_refused(lake: DriverNode) -> None:
    """A namespace in which the reader sees nothing has the page of the refusal."""
    lake.done("POST", "/iceberg/v1/lake.main/namespaces", {"namespace": ["closed"]})
    add_table(lake, "closed", "t")
    sam = add_table_reader(lake, "sam", path=["main", "raw", "nyc", "hops"])

    answer = sam.get("/console/o/namespace/lake/main/closed")

    assert answer.status == 403
    assert "something in it" not in text_of(answer)
