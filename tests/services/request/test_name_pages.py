# SPDX-License-Identifier: Apache-2.0
"""Pages of listings: complete and in order for every block size, correct during changes, with a limited number of
reads.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from limnos.model.entities import Listing
from limnos.model.kinds import Kind
from limnos.model.privileges import Privilege
from limnos.services.catalog.namespaces import namespaces_list
from limnos.services.catalog.tables import table_drop, tables_list
from limnos.services.request import name_pages
from limnos.services.request.context import Context
from limnos.services.request.name_pages import NamePage, PageRequest
from limnos.view import listings
from limnos.view.freshness_gate import COLD_READS
from limnos.view.view import StoreView
from tests.inprocess import MAIN, Node
from tests.services.conftest import ServiceDesk

NAMES = [f"t{number:03}" for number in range(60)]


@pytest.fixture
def full(desk: ServiceDesk, monkeypatch: pytest.MonkeyPatch) -> ServiceDesk:
    """A desk with a namespace of sixty tables, in blocks of four."""
    monkeypatch.setattr(listings, "BLOCK", 4)
    monkeypatch.setattr(name_pages, "READ_MAX", 16)
    desk.namespace("a")
    for name in NAMES:
        desk.table("a", name)
    return desk


def page(
    desk: ServiceDesk, page_request: PageRequest = name_pages.ALL_NAMES, *, ctx: Context | None = None
) -> NamePage:
    """Return a page of the tables."""
    return desk.run(
        (ctx or desk.ctx()).read(MAIN, lambda request_view: tables_list(request_view, ("a",), page_request))
    )


def walk(desk: ServiceDesk, size: int, *, ctx: Context | None = None) -> list[str]:
    """Read all pages."""
    names: list[str] = []
    after = ""
    while True:
        part = page(desk, PageRequest(after, size), ctx=ctx)
        assert len(part.names) <= size
        names += part.texts()
        if part.last is None:
            return names
        assert part.last == names[-1]
        after = part.last


@pytest.mark.parametrize("size", [1, 3, 4, 5, 17, 59, 60, 61])
def test_pages_of_any_size_have_every_name_once(full: ServiceDesk, size: int) -> None:
    """Pages of any size, with cached and uncached blocks, have every name once and in order."""
    fresh = Node(full.lab.open())

    assert walk(full, size, ctx=fresh.ctx()) == NAMES
    assert walk(full, size, ctx=fresh.ctx()) == NAMES
    assert page(full, ctx=fresh.ctx()).texts() == NAMES


@pytest.mark.parametrize("size", [1, 4, 7, None])
def test_hidden_names_do_not_count_towards_the_page_size(full: ServiceDesk, size: int | None) -> None:
    """Hidden names do not count towards the page size, and the last page is marked as last."""
    full.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG, Privilege.USE_SCHEMA)
    seen = NAMES[2::9]
    for name in seen:
        full.allow("ana", Kind.TABLE, f"main.a.{name}", Privilege.SELECT_TABLE)
    fresh = Node(full.lab.open())

    for _ in ("cold", "warm"):
        names = page(full, ctx=fresh.ctx("ana")).texts() if size is None else walk(full, size, ctx=fresh.ctx("ana"))
        assert names == seen


def test_unchanged_list_returns_identical_part_objects(full: ServiceDesk) -> None:
    """A list without pages returns the identical part objects until one of them changes. A page that was cut is never
    identical.
    """
    full.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG, Privilege.USE_SCHEMA)
    for name in NAMES[:30:2]:
        full.allow("ana", Kind.TABLE, f"main.a.{name}", Privilege.SELECT_TABLE)
    ctx = full.ctx("ana")
    first = page(full, ctx=ctx)

    again = page(full, ctx=ctx)
    full.table("a", "t0005")
    after = page(full, ctx=ctx)
    cut = page(full, PageRequest("", 3), ctx=ctx)

    assert first.whole
    assert all(one is other for one, other in zip(first.parts, again.parts, strict=True))
    assert after.texts() == NAMES[:30:2]
    assert sum(one is not other for one, other in zip(first.parts, after.parts, strict=True)) == 1
    assert cut.texts() == NAMES[:6:2]
    assert not cut.whole


def test_cache_of_visible_names_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The visible names of blocks are cached up to a number of names; the least recently used are evicted."""
    monkeypatch.setattr(name_pages, "VISIBLE_NAMES_MAX", 20 * (name_pages.VISIBLE_NAMES_OVERHEAD + 1))
    visible_objects = name_pages.VisibleNamesCache()
    blocks = [Listing((str(number),), (number,), (None,), (b'"%d"' % number,)) for number in range(100)]

    for number, block in enumerate(blocks):
        visible_objects.put(number, name_pages.visible_names_all(block))
        assert visible_objects.get(0) is not None
    assert visible_objects.get(99) is not None
    assert sum(visible_objects.get(number) is not None for number in range(1, 70)) == 0


def test_changes_elsewhere_keep_cached_blocks(full: ServiceDesk) -> None:
    """Changes elsewhere, and added or removed names, keep the other cached blocks."""
    ctx = full.ctx()
    walk(full, 10, ctx=ctx)
    full.namespace("b")
    full.table("b", "other")
    before = COLD_READS[()]

    full.table("a", "t0005")
    full.run(table_drop(full.ctx(), MAIN, namespace=("a",), name="t059", purge=False))
    names = walk(full, 10, ctx=ctx)

    assert names == sorted({*NAMES, "t0005"} - {"t059"})
    assert COLD_READS[()] - before <= 4, "create and drop read a few rows, the pages none"


def test_paging_during_changes_returns_stable_names_once(full: ServiceDesk) -> None:
    """A reader who pages while names change receives every name that exists throughout, exactly once."""
    names, after, number = list[str](), "", 0
    fresh = Node(full.lab.open())
    while True:
        part = page(full, PageRequest(after, 5), ctx=fresh.ctx())
        names += part.texts()
        full.table("a", f"t{(number * 7) % 60:03}x")
        full.run(table_drop(full.ctx(), MAIN, namespace=("a",), name=NAMES[number * 3], purge=False))
        number += 1
        if part.last is None:
            break
        after = part.last

    stayed = set(NAMES) - {NAMES[each * 3] for each in range(number)}
    assert names == sorted(set(names))
    assert stayed <= set(names)


def test_page_reads_no_more_than_it_needs(full: ServiceDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page in the middle of a list reads about as many rows as it returns."""
    rows: list[int] = []
    real = full.lab.store._drive  # type: ignore[union-attr]

    def counted(load: Any) -> Any:  # noqa: ANN401 - as the store has it
        facts = real(load)  # type: ignore[call-arg]  # of the embedded store
        rows.extend(len(value.names) for value in facts.values.values() if hasattr(value, "names"))
        return facts

    monkeypatch.setattr(full.lab.store, "_drive", counted)

    assert page(full, PageRequest("t030", 4)).texts() == NAMES[31:35]
    assert sum(rows) <= 4 + 1 + 4


def test_long_list_does_not_block_the_event_loop(full: ServiceDesk) -> None:
    """During a list that needs many reads, other tasks run on the event loop."""
    fresh = Node(full.lab.open())
    turns: list[int] = []

    async def story() -> NamePage:
        async def others() -> None:
            while True:
                turns.append(1)
                await asyncio.sleep(0)

        busy = asyncio.create_task(others())
        listing = await fresh.ctx().read(MAIN, lambda request_view: tables_list(request_view, ("a",)))
        busy.cancel()
        return listing

    assert full.run(story()).texts() == NAMES
    assert len(turns) >= 60 // 16


def test_list_larger_than_the_view_budget_is_answered(full: ServiceDesk) -> None:
    """A listing that is larger than the view's budget is answered, because the view keeps the facts of a request until
    its end.
    """
    fresh = Node(full.lab.open(), bytes_max=2_000)

    assert page(full, ctx=fresh.ctx()).texts() == NAMES
    assert walk(full, 7, ctx=fresh.ctx()) == NAMES
    fresh.view.get(("nothing",))
    assert not fresh.view._leases


def test_empty_listings_are_cached(desk: ServiceDesk) -> None:
    """An empty listing is cached, too."""
    desk.namespace("a")

    assert page(desk).texts() == []
    assert list(page(desk, PageRequest("x", 3)).names) == []
    listing = desk.run(desk.ctx().read(MAIN, lambda request_view: namespaces_list(request_view, ("a",))))
    assert listing.texts() == []


def test_view_returns_to_its_budget_after_the_request() -> None:
    """The view may exceed its budget only during a request. Afterwards it drops the old generation."""
    view = StoreView(bytes_max=1_000)
    lease = view.lease()
    for number in range(50):
        view._put(("node", number), "x")
    assert len(view) == 50
    view.release(lease)
    for number in range(50, 60):
        view._put(("node", number), "x")

    assert len(view) < 20
