# SPDX-License-Identifier: Apache-2.0
"""The search page and the search palette: objects that match a query, best first, each with the matching part.

Has no business rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import quote

import msgspec

from limnos.http.response import Response
from limnos.model.errors import BadRequest
from limnos.model.kinds import Kind
from limnos.names import display
from limnos.rooms.console.http.addresses import KINDS, ObjectAddress
from limnos.rooms.console.http.frame import Frame, frame_of, icon_of
from limnos.rooms.console.http.navigation.palette import PaletteLink, palette_links, pipeline_names
from limnos.rooms.console.http.page_requests import ConsoleRoute, PageRequest
from limnos.rooms.console.http.rendering import render, static_version
from limnos.rooms.console.http.responses import html_response
from limnos.rooms.search.services.facets import SearchFacet
from limnos.rooms.search.services.hits import SearchHit
from limnos.rooms.search.services.questions import FILTERS, SEARCHED, SearchQuestion, question_of
from limnos.rooms.search.services.searches import search
from limnos.rooms.search.services.spelling import correct_query

PALETTE_HITS: Final = 12
HITS: Final = 50
QUESTION_MAX: Final = 300


class HitLine(msgspec.Struct, frozen=True, kw_only=True):
    """A search hit: an object with the matching part of its text."""

    name: str
    path: str
    kind: str
    icon: str
    href: str
    format: str
    matched: tuple[str, ...]
    changed_ms: int


class QueryLink(msgspec.Struct, frozen=True):
    """A link to another query: its text, and the count of its hits, if known."""

    text: str
    href: str
    count: int = 0


class SearchPage(msgspec.Struct, frozen=True, kw_only=True):
    """The data of the search page.

    `more`: further hits exist. `bounded`: not all objects were searched. `behind`: the number of changes that the
    search index lacks. `meant`: links to the query with a corrected word. `facets`: links to the query with another
    filter. `filters`: the filters of the query in words. `advice`: a sentence about words that look like filters.
    """

    frame: Frame
    question: str
    hits: tuple[HitLine, ...] = ()
    more: bool = False
    bounded: bool = False
    behind: int = 0
    refusal: str = ""
    meant: tuple[QueryLink, ...] = ()
    facets: tuple[QueryLink, ...] = ()
    filters: str = ""
    advice: str = ""


class PalettePart(msgspec.Struct, frozen=True, kw_only=True):
    """The data of the search palette: pages and people, the first hits, and corrected queries."""

    base: str
    version: str
    hits: tuple[HitLine, ...]
    note: str
    meant: tuple[QueryLink, ...] = ()
    links: tuple[PaletteLink, ...] = ()


async def search_page(page_request: PageRequest) -> Response:
    """Show the objects that match a query and that the caller may load."""
    text = (page_request.request.query("q") or "").strip()[:QUESTION_MAX]
    if page_request.is_part:
        return await _palette(page_request, text)
    frame = await frame_of(page_request, f"Search: {text}" if text else "Search", section="search", question=text)
    if not text:
        return html_response(page_request.request, render("search.html", SearchPage(frame=frame, question="")))
    try:
        question = question_of(text, {})
        answer = await search(page_request.ctx, frame.metalake, question=question, limit=HITS, with_facets=True)
    except BadRequest as error:
        view = SearchPage(frame=frame, question=text, refusal=error.message)
        return html_response(page_request.request, render("search.html", view), status=400)
    names = await _pipelines_among(page_request, frame.metalake, hits=answer.hits)
    hits = tuple(_line(page_request, frame.metalake, hit=hit, question=question, names=names) for hit in answer.hits)
    suggestion_links = tuple(
        _link(page_request, correct_query(text, each), metalake=frame.metalake) for each in answer.suggestions
    )
    view = SearchPage(
        frame=frame,
        question=text,
        hits=hits,
        more=answer.more,
        bounded=answer.is_bounded,
        behind=answer.unindexed_changes,
        meant=suggestion_links,
        facets=tuple(_facet_links(page_request, text, metalake=frame.metalake, facets=answer.facets)),
        filters=" and ".join(filter_texts(question)),
        advice=_key_advice(question),
    )
    return html_response(page_request.request, render("search.html", view))


_KINDS: Final = {"job_template": "pipeline or job"}
"""Labels of kinds whose word is Gravitino's."""


def _link(page_request: PageRequest, text: str, *, metalake: str, count: int = 0) -> QueryLink:
    return QueryLink(text, f"{page_request.base}/search?metalake={quote(metalake)}&q={quote(text)}", count)


def _facet_links(
    page_request: PageRequest, text: str, *, metalake: str, facets: Iterable[SearchFacet]
) -> Iterator[QueryLink]:
    """Yield links to queries with one more filter, for filters that have several values among the hits. Values are
    kinds, names of catalogs and formats, which have no spaces.
    """
    values = Counter(each.key for each in facets)
    for each in facets:
        if values[each.key] > 1:
            link = _link(page_request, f"{text} {each.key}:{each.value}", metalake=metalake, count=each.hits)
            yield msgspec.structs.replace(link, text=f"{each.key}: {_KINDS.get(each.value, each.value)}")


async def _palette(page_request: PageRequest, text: str) -> Response:
    """Return a few hits for the palette, without the frame of a page. For an invalid query it has the error instead."""
    metalake = page_request.request.query("metalake") or page_request.ctx.services.defaults.metalake
    note = "No object that you may see was found." if text else "Type the start of a name, or of a page such as trash."
    hits: tuple[HitLine, ...] = ()
    suggestion_links: tuple[QueryLink, ...] = ()
    links: tuple[PaletteLink, ...] = ()
    if text:
        links = await palette_links(page_request, metalake, text=text)
        try:
            question = question_of(text, {})
            answer = await search(page_request.ctx, metalake, question=question, limit=PALETTE_HITS)
            suggestion_links = tuple(
                _link(page_request, correct_query(text, each), metalake=metalake) for each in answer.suggestions
            )
            names = await _pipelines_among(page_request, metalake, hits=answer.hits)
            hits = tuple(_line(page_request, metalake, hit=hit, question=question, names=names) for hit in answer.hits)
            note = f"{note} {_key_advice(question)}".rstrip()
        except BadRequest as error:
            note = error.message
    part = PalettePart(
        base=page_request.base, version=static_version(), hits=hits, note=note, meant=suggestion_links, links=links
    )
    return html_response(page_request.request, render("part_palette.html", part))


def _key_advice(question: SearchQuestion) -> str:
    """Return a sentence that lists the filters, if a query has an unknown key such as `column:`; else empty."""
    if not question.other_keys:
        return ""
    others, filters = (", ".join(f"{each}:" for each in keys) for keys in (question.other_keys, FILTERS))
    verb = "is not a filter" if len(question.other_keys) == 1 else "are not filters"
    return f"{others} {verb}, so it was searched as text. The filters are {filters}."


def filter_texts(question: SearchQuestion) -> tuple[str, ...]:
    """Describe the filters of a query, such as `with the tag pii`."""
    texts = []
    for name, value in question.tags:
        texts.append(f"with the tag {name}" if value is None else f"with the tag {name} and its value {value}")
    if question.owner is not None:
        texts.append(f"owned by {question.owner}")
    if question.kinds != SEARCHED:
        texts.append(f"of the kind {', '.join(each.word.replace('_', ' ') for each in question.kinds)}")
    if question.table_format is not None:
        texts.append(f"of the format {question.table_format}")
    if question.below:
        texts.append(f"below {display.render(question.below)}")
    return tuple(texts)


async def _pipelines_among(page_request: PageRequest, metalake: str, *, hits: Iterable[SearchHit]) -> frozenset[str]:
    """Return the names of the pipelines that the caller may load, if hits may be among them."""
    if any(each.kind is Kind.JOB_TEMPLATE for each in hits):
        return await pipeline_names(page_request, metalake)
    return frozenset()


def _line(
    page_request: PageRequest, metalake: str, *, hit: SearchHit, question: SearchQuestion, names: frozenset[str]
) -> HitLine:
    """Format a hit; a job template that is in `names` is a pipeline with its own page."""
    word = hit.kind.word
    href = ""
    if hit.kind is Kind.JOB_TEMPLATE and hit.path[-1] in names:
        word = "pipeline"
        href = f"{page_request.base}/pipeline?metalake={quote(metalake)}&name={quote(hit.path[-1])}"
    if word in KINDS and (hit.kind is Kind.CATALOG) is (len(hit.path) == 1):
        href = page_request.base + ObjectAddress(hit.kind, metalake, hit.path[0], hit.path[1:]).path
    is_filtered = any(each.where == "filter" for each in hit.matched)
    matching_texts = tuple(f"{each.where}: {each.text}" for each in hit.matched if each.where not in ("name", "filter"))
    matching_texts += filter_texts(question) if is_filtered else ()
    return HitLine(
        name=hit.path[-1],
        path=display.render(hit.path),
        kind=word.replace("_", " "),
        icon=icon_of(hit.kind.word),
        href=href,
        format=hit.table_format,
        matched=matching_texts,
        changed_ms=hit.changed_at,
    )


ROUTES = (
    ConsoleRoute(method="GET", path="/search", handler=search_page, operation="search-page", query=("q", "metalake")),
)
