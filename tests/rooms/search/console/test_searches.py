# SPDX-License-Identifier: Apache-2.0
"""The search page: results, hidden objects, invalid queries, and explanations of the results."""

from __future__ import annotations

import re
from html import unescape

from limnos.rooms.console.http.rendering import render
from limnos.rooms.search.console.searches import PalettePart, QueryLink
from limnos.rooms.search.services.indexing import index_step
from tests.http.driver import API, PROGRAM, DriverNode, let_jobs
from tests.rooms.console.http.conftest import add_table
from tests.rooms.console.http.visitor import ConsoleVisitor, PageReader, text_of

FACET = re.compile(r'<a class="chip" href="([^"]+)">([^<]*) <span class="muted">(\d+)</span>')
"""A link to a narrower search: its URL, its text and its count of hits."""


def test_search_by_name_prefix_links_to_the_object(admin: ConsoleVisitor) -> None:
    """A search by the beginning of a name finds the object with a link to its page. The box keeps the query."""
    page = admin.read("/console/search?q=flig")

    assert "main.raw.flights" in page.text
    assert "/console/o/table/lake/main/raw/flights" in page.hrefs
    assert ("value", "flig") in page.attributes


def test_hidden_object_looks_like_no_result(lake: DriverNode) -> None:
    """A search for a hidden object returns the same page as a search without results."""
    lake.done("POST", "/api/metalakes/lake/users", {"name": "ana"})
    ana = ConsoleVisitor(lake).sign_in("ana")

    hidden, missing = (ana.read(f"/console/search?q={name}").text for name in ("flights", "nothing"))

    assert "No object that you may see" in hidden
    assert hidden.replace("flights", "nothing") == missing


def test_invalid_filter_value_returns_400(admin: ConsoleVisitor) -> None:
    """A query with an invalid filter value is 400 on the search page."""
    answer = admin.get("/console/search?q=kind%3Anothing")

    assert answer.status == 400
    assert 'role="alert"' in text_of(answer)


def test_empty_query_shows_examples(admin: ConsoleVisitor) -> None:
    """The search page without a query shows examples."""
    assert "kind:table" in admin.read("/console/search").text


def test_palette_answer_has_only_links_without_page_frame(admin: ConsoleVisitor) -> None:
    """The palette's answer has only links, without the page's frame. Empty and invalid queries get a message."""
    palette_html = text_of(admin.get("/console/search?metalake=lake&q=flights", x_limnos_part="1"))
    empty = text_of(admin.get("/console/search?metalake=lake&q=", x_limnos_part="1"))
    wrong = admin.get("/console/search?metalake=lake&q=kind:odd", x_limnos_part="1")

    assert PageReader(palette_html).hrefs == ["/console/o/table/lake/main/raw/flights"]
    assert "<html" not in palette_html
    assert "Type the start of a name" in empty
    assert (wrong.status, PageReader(text_of(wrong)).hrefs) == (200, [])


def test_palette_omits_hidden_objects(lake: DriverNode) -> None:
    """The palette does not find hidden objects. A user who is not in the metalake is refused."""
    lake.done("POST", "/api/metalakes/lake/users", {"name": "ana"})
    ana, stranger = (ConsoleVisitor(lake).sign_in(user) for user in ("ana", "stranger"))

    answer = ana.get("/console/search?metalake=lake&q=flights", x_limnos_part="1")

    assert "No object that you may see" in text_of(answer)
    assert "flights" not in text_of(answer)
    assert stranger.get("/console/search?metalake=lake&q=flights", x_limnos_part="1").status in {403, 404}


def test_palette_suggests_a_corrected_word() -> None:
    """The palette offers corrections of a misspelt word, as links to the search for them."""
    meant = (QueryLink("flights", "/console/search?metalake=lake&q=flights"),)

    page = PageReader(
        render(
            "part_palette.html",
            PalettePart(base="/console", version="v", hits=(), note="Nothing was found.", meant=meant),
        )
    )

    assert page.hrefs == ["/console/search?metalake=lake&q=flights"]
    assert "Nothing was found. flights Did you mean this?" in page.text


def test_filters_without_words_are_explained(admin: ConsoleVisitor) -> None:
    """A query without words, with or without results, has an explanation of its filters."""
    page = admin.read("/console/search?q=kind:table+owner:admin+in:main.raw").text
    nothing = admin.read("/console/search?q=tag:level=high+tag:pii+format:lance").text

    assert "Only objects owned by admin and of the kind table and below main.raw." in page
    assert "main.raw.flights" in page
    assert "filter:" not in page
    assert "with the tag level and its value high and with the tag pii and of the format lance" in nothing


def test_search_box_placeholder_names_columns_tags_and_owners(admin: ConsoleVisitor) -> None:
    """The placeholder of the search box names columns, tags and owners."""
    page = admin.read("/console/search")

    assert ("placeholder", "Search names, columns, tag:pii, owner:ana") in page.attributes
    assert "Columns of Lance tables are not searched" in page.text


def test_matching_column_or_comment_is_shown_once(admin: ConsoleVisitor) -> None:
    """A column that contains all words is named once as the match, and a matching comment is quoted."""
    fields = [
        {"id": at, "name": name, "required": False, "type": "int"}
        for at, name in enumerate(("arr_time", "dep_delay", "arr_delay"), 1)
    ]
    add_table(admin.node, "raw", "otp", {"type": "struct", "fields": fields}, comment="Delays of flights, per leg")
    while admin.node.runner.run(index_step(admin.node.built.services)):
        pass

    assert "main.raw.otp table iceberg column: arr_delay " in admin.read("/console/search?q=arr_delay").text
    assert "comment: Delays of flights, per leg" in admin.read("/console/search?q=delays+flights").text
    palette = PageReader(text_of(admin.get("/console/search?metalake=lake&q=per+leg", x_limnos_part="1")))
    assert "comment: Delays of flights, per leg" in palette.text


def test_unknown_filter_lists_the_existing_filters(admin: ConsoleVisitor) -> None:
    """For an unknown filter such as `column:`, the page and the palette list the existing filters. Other queries do not
    get the list.
    """
    advice = "column: is not a filter, so it was searched as text. The filters are tag:, owner:, kind:, in:, format:."
    palette = text_of(admin.get("/console/search?metalake=lake&q=column:delay", x_limnos_part="1"))

    assert advice in admin.read("/console/search?q=column:delay").text
    assert advice in PageReader(palette).text
    assert "is not a filter" not in admin.read("/console/search?q=flights+tag:pii").text


def test_each_facet_leads_to_its_hits(admin: ConsoleVisitor) -> None:
    """The link of a facet finds as many objects as the facet says."""
    let_jobs(admin.node)
    for name in ("west", "far-west"):
        admin.node.done("POST", f"{API}/lake/catalogs", {"name": name, "type": "FILESET", "provider": "fileset"})
        admin.node.done("POST", f"{API}/lake/catalogs/{name}/schemas", {"name": "raw"})
    admin.node.done("POST", f"{API}/lake/jobs/templates", {"jobTemplate": {**PROGRAM, "name": "raw"}})
    facets = FACET.findall(text_of(admin.get("/console/search?q=raw")))
    pages = {text: admin.read(unescape(href)).text for href, text, _ in facets}

    assert {"in: west", "in: far-west", "kind: pipeline or job", "kind: namespace"} <= pages.keys()
    assert [(text, count) for _, text, count in facets if f" {count} shown" not in pages[text]] == []
