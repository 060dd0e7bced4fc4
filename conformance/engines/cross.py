# SPDX-License-Identifier: Apache-2.0
"""Tables written by each engine and read by all: the important types, partitioned by day, with deletes if supported.

Job: let every engine write, then every engine read the tables of all others, and compare rows. May import the story's
words. It must not know any engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from conformance.engines.driver import ANOTHER
from conformance.engines.rows import DELETED, FIRST, SECOND, TYPED, Row, difference, remaining_rows
from conformance.engines.story import CLIENT, Story

SPACE = ["crossed"]


def written(story: Story) -> list[Row]:
    """Let an engine write its table. Returns its rows as the witness reads them; none if there is no table."""
    remote, witness = story.remote, story.witness
    space, name = SPACE, story.engine
    rows: list[Row] = []

    def look(*, deleted: bool) -> str:
        rows[:] = witness.read(space, name, list(TYPED))
        other = difference(rows, remaining_rows(deleted=deleted), TYPED)
        return f"the witness reads {other}" if other else ""

    def create() -> str:
        remote.ask("create_typed", space, name)
        return "" if witness.is_partitioned_by_day(space, name) else "other partitions"

    def write() -> str:
        for rows in (FIRST, SECOND):
            remote.ask("append_typed", space, name, rows)
        return look(deleted=False)

    remote.ask("be", "admin")
    if not story.check("types: create, partitioned by day", create):
        if story.outcomes[-1].result != CLIENT:
            return []
        if not witness.exists(space, name):
            witness.create_typed(space, name)  # an engine that cannot create such a table may write to one
    if not story.check("types: write", write) and story.outcomes[-1].result != CLIENT:
        return []

    def delete() -> str:
        remote.ask("delete", space, name, DELETED)
        return look(deleted=True)

    story.check("types: delete", delete)
    return rows


def read(story: Story, tables: Mapping[str, Sequence[Row]]) -> None:
    """Let an engine read all tables. Its rows must equal the witness's."""
    story.remote.ask("be", "admin")
    for writer, rows in tables.items():

        def ask(writer: str = writer, rows: Sequence[Row] = rows) -> str:
            other = difference(story.remote.ask("read", SPACE, writer, list(TYPED)), rows, TYPED)
            return f"it reads {other}" if other else ""

        story.check(f"reads {writer}", ask, kind="" if writer == story.engine else ANOTHER)
