"""Written by each, read by all: a table with the types that matter, partitioned by day, with a delete where the writer has deletes.

Job: let every engine write, then every engine read what every other wrote, and compare rows. May import the story's words. It must not know any
engine.
"""

from __future__ import annotations

from collections.abc import Mapping

from conformance.engines.drivers.pyiceberg_driver import Engine as Witness
from conformance.engines.rows import DELETED, FIRST, SECOND, TYPED, kept, same
from conformance.engines.story import CLIENT, Story

SPACE = ["crossed"]


def written(story: Story) -> bool | None:
    """Let an engine write its table; says whether a row was deleted, or nothing when there is no table."""
    remote, witness = story.remote, story.witness
    space, name = SPACE, story.engine

    def create() -> str:
        remote.ask("create_typed", space, name)
        return "" if witness.is_partitioned_by_day(space, name) else "other partitions"

    def write() -> str:
        for rows in (FIRST, SECOND):
            remote.ask("append_typed", space, name, rows)
        return read_by(witness, name, deleted=False)

    remote.ask("be", "admin")
    if not story.check("types: create, partitioned by day", create):
        if story.outcomes[-1].result != CLIENT:
            return None
        if not witness.exists(space, name):
            witness.create_typed(space, name)  # an engine that makes no such table may write to one
    if not story.check("types: write", write):
        return None

    def delete() -> str:
        remote.ask("delete", space, name, DELETED)
        return read_by(witness, name, deleted=True)

    story.check("types: delete", delete)
    return story.outcomes[-1].result != CLIENT


def read_by(witness: Witness, name: str, *, deleted: bool) -> str:
    """What is wrong with a table as the witness reads it."""
    found = witness.read(SPACE, name, list(TYPED))
    return "" if same(found, kept(deleted=deleted), TYPED) else f"the witness reads {found}"


def read(story: Story, tables: Mapping[str, bool]) -> None:
    """Let an engine read the tables of all, with or without the deleted row."""
    story.remote.ask("be", "admin")
    for writer, deleted in tables.items():

        def ask(writer: str = writer, deleted: bool = deleted) -> str:
            found = story.remote.ask("read", SPACE, writer, list(TYPED))
            return "" if same(found, kept(deleted=deleted), TYPED) else f"it reads {found}"

        story.check(f"reads {writer}", ask)
