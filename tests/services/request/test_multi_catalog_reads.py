"""A read over two catalogs sees one moment of both."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from limnos.model.errors import NotFound, PermissionDenied
from limnos.model.kinds import Kind
from limnos.services.catalog.catalogs import catalog_load
from limnos.services.catalog.tables import table_drop
from limnos.services.request import multi_catalog_reads
from limnos.services.request.multi_catalog_reads import read_many_scopes
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.view.keys import path_key
from tests.backends import sqlite_copy
from tests.freshness.test_scripts import SIDE, Stage
from tests.inprocess import LAKE, MAIN

T = TypeVar("T")


def tables_there(request_views: tuple[RequestView, ...]) -> tuple[bool, ...]:
    """Return whether `a.t` exists, in each catalog's request view."""
    return tuple(request_view.find(("a", "t"), Kind.TABLE)[0] is not None for request_view in request_views)


def catalogs_loaded(request_views: tuple[RequestView, ...]) -> list[str]:
    """The names of the scenes' catalogs, for who may use them."""
    return [catalog_load(request_view).name for request_view in request_views]


async def drop(stage: Stage, scope: RequestScope) -> None:
    """Drop `a.t` on the other node."""
    await table_drop(stage.admin, scope, namespace=("a",), name="t", purge=False)


async def told_while_both_go(stage: Stage) -> tuple[bool, ...]:
    """What a reader of `main` and `side` is told whose gate has read before `a.t` went in `side` and then in `main`.

    Before that answer lands, somebody else's load brings the view of `main` alone past it.
    """
    ctx = stage.node.ctx()
    _, zones = await ctx.read(MAIN, lambda request_view: (tables_there((request_view,)), request_view.settled.zones))
    path = path_key(zones[-1], (("namespace", "a"), ("table", "t")))
    await ctx.read(SIDE, lambda request_view: tables_there((request_view,)))

    async def meanwhile() -> None:
        await drop(stage, SIDE)
        await drop(stage, MAIN)
        await stage.node.gate.fetch(zones, {path: zones[-1]})

    stage.store.in_gate = meanwhile
    return await read_many_scopes(ctx, (MAIN, SIDE), tables_there)


def play(template: Path, folder: Path, story: Callable[[Stage], Awaitable[T]]) -> T:
    """Play a story on two nodes over one file."""

    async def run() -> T:
        stage = Stage(sqlite_copy(template, folder))
        try:
            await stage.furnish()
            return await story(stage)
        finally:
            await stage.close()

    return asyncio.run(run())


def test_two_catalogs_are_seen_at_one_moment(sqlite_template: Path, tmp_path: Path) -> None:
    """`main` lost its table after `side` did: nobody sees it gone in `main` and still there in `side`."""
    assert play(sqlite_template, tmp_path, told_while_both_go) == (False, False)


def test_without_the_question_for_one_moment_it_would_mix(
    sqlite_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same story with that care taken out shows a state that never was: so the care is what keeps it away."""
    monkeypatch.setattr(multi_catalog_reads, "_stands_at", lambda *_: True)

    assert play(sqlite_template, tmp_path, told_while_both_go) == (False, True)


def test_each_catalog_is_refused_as_alone(sqlite_template: Path, tmp_path: Path) -> None:
    """A catalog that is not there, or closed to the caller, fails the whole read in the words of a read of it alone."""

    async def told(stage: Stage) -> list[str]:
        found = []
        for user, second in (("admin", "nowhere"), ("eve", "side")):
            try:
                await read_many_scopes(stage.node.ctx(user), (MAIN, RequestScope(LAKE, second)), catalogs_loaded)
            except (NotFound, PermissionDenied) as error:
                found.append(str(error))
        return found

    first, second = play(sqlite_template, tmp_path, told)

    assert "nowhere" in first
    assert "eve" in second


def test_nothing_is_asked_for_no_catalog(sqlite_template: Path, tmp_path: Path) -> None:
    """Of no catalogs there is nothing to know, so nobody waits for an answer about them."""

    async def told(stage: Stage) -> int:
        return await asyncio.wait_for(read_many_scopes(stage.node.ctx(), (), len), 300)

    assert play(sqlite_template, tmp_path, told) == 0
