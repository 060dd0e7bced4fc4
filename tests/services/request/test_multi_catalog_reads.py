# SPDX-License-Identifier: Apache-2.0
"""A read over two catalogs uses one consistent view of both."""

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
    """Return for each catalog whether `a.t` exists in its request view."""
    return tuple(request_view.find(("a", "t"), Kind.TABLE)[0] is not None for request_view in request_views)


def catalogs_loaded(request_views: tuple[RequestView, ...]) -> list[str]:
    """Return the names of the catalogs in the request views of their users."""
    return [catalog_load(request_view).name for request_view in request_views]


async def drop(stage: Stage, scope: RequestScope) -> None:
    """Drop `a.t` on the other node."""
    await table_drop(stage.admin, scope, namespace=("a",), name="t", purge=False)


async def told_while_both_go(stage: Stage) -> tuple[bool, ...]:
    """Return what a reader of `main` and `side` sees. Its freshness check is read before `a.t` is dropped in `side` and
    then in `main`. Before the answer arrives, another load moves only the view of `main` past the drop.
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
    """Run a scenario on two nodes over one file."""

    async def run() -> T:
        stage = Stage(sqlite_copy(template, folder))
        try:
            await stage.furnish()
            return await story(stage)
        finally:
            await stage.close()

    return asyncio.run(run())


def test_two_catalogs_are_read_consistently(sqlite_template: Path, tmp_path: Path) -> None:
    """Although `side` loses its table before `main` does, no reader sees the table missing in `main` and present in
    `side`.
    """
    assert play(sqlite_template, tmp_path, told_while_both_go) == (False, False)


def test_without_the_consistency_check_the_read_is_mixed(
    sqlite_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the consistency check, the same scenario returns such a mixed state."""
    monkeypatch.setattr(multi_catalog_reads, "_stands_at", lambda *_: True)

    assert play(sqlite_template, tmp_path, told_while_both_go) == (False, True)


def test_missing_or_hidden_catalog_fails_the_whole_read(sqlite_template: Path, tmp_path: Path) -> None:
    """A missing or hidden catalog fails the whole read with the error that a read of that catalog alone gives."""

    async def read_errors(stage: Stage) -> list[str]:
        messages = []
        for user, second in (("admin", "nowhere"), ("eve", "side")):
            try:
                await read_many_scopes(stage.node.ctx(user), (MAIN, RequestScope(LAKE, second)), catalogs_loaded)
            except (NotFound, PermissionDenied) as error:
                messages.append(str(error))
        return messages

    first, second = play(sqlite_template, tmp_path, read_errors)

    assert "nowhere" in first
    assert "eve" in second


def test_read_of_no_catalogs_sends_no_query(sqlite_template: Path, tmp_path: Path) -> None:
    """A read of no catalogs sends no query."""

    async def read_no_catalogs(stage: Stage) -> int:
        return await asyncio.wait_for(read_many_scopes(stage.node.ctx(), (), len), 300)

    assert play(sqlite_template, tmp_path, read_no_catalogs) == 0
