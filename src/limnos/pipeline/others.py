"""Tables of a pipeline that another pipeline makes: two would take turns in overwriting one another's rows.

Job: find them by who wrote a table last, and whether that pipeline still declares it. May import `client`, `names` and this room's
values. Who may not see the other pipeline's run is not told of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from limnos.client.errors import DeniedError, NotFoundError, RefusedError
from limnos.names import display
from limnos.pipeline.marks import RUN, mark_of
from limnos.pipeline.problems import Problem

if TYPE_CHECKING:
    from limnos.client import Client
    from limnos.client.values import Json
    from limnos.pipeline.declaration import Parts, Pipeline
    from limnos.pipeline.rights import Found

T = TypeVar("T")
_RUN = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""A run's id. Whoever may write a table may write anything there."""


def made_by_others(client: Client, pipeline: Pipeline, *, found: Mapping[Parts, Found]) -> Iterator[Problem]:
    """Steps whose tables another pipeline made and still declares."""

    @cache
    def maker(run: str) -> str | None:
        return _asked(lambda: client.runs.load(run).pipeline)

    @cache
    def declared(name: str) -> frozenset[Parts]:
        return _tables(_asked(lambda: client.pipelines.load(name).declaration))

    for step in pipeline.steps:
        run = mark_of(found[step.table].metadata, RUN) or ""
        other = maker(run) if _RUN.fullmatch(run) else None
        if other is not None and other != pipeline.name and step.table in declared(other):
            yield Problem(
                f"{step.name}: {display.render(step.table)} is made by pipeline '{other}', whose run {run} wrote it last: two pipelines would "
                f"overwrite one another's rows. Make another table, or take it out of that pipeline first (run what is left of it, or "
                f"`limnos pipeline drop {other}`)",
                step.at,
            )


def _asked(call: Callable[[], T]) -> T | None:
    """What the server says; None where the caller may not know, or it is gone."""
    try:
        return call()
    except (DeniedError, NotFoundError, RefusedError):
        return None


def _tables(declaration: Json | None) -> frozenset[Parts]:
    """The tables that a recorded declaration makes; nothing where somebody else declares in other words."""
    steps = (declaration or {}).get("steps")
    tables = [each.get("table") for each in steps if isinstance(each, dict)] if isinstance(steps, list) else []
    return frozenset(tuple(map(str, table)) for table in tables if isinstance(table, list))
