# SPDX-License-Identifier: Apache-2.0
"""What governs an object, as `show` prints it: tags, restrictions, the jobs that write it, and maintenance.

Each part is a request of its own; a part that the caller may not read is left out. Where it needs a right beyond that
to load the object, the caller's rights are asked for first: the audit would otherwise have a refused attempt of a user
who only looked at the object.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from limnos.client import ArgumentError, ClientError
from limnos.names import display

if TYPE_CHECKING:
    from limnos.client import Client

GOVERNED: Final = frozenset({"catalog", "namespace", "table", "view", "topic", "fileset", "model"})
"""Kinds of objects that have tags."""
_NEEDED: Final = {"restrictions": "restrict", "maintenance": "table_maintain"}
"""The action that the server requires for a part, if loading the object does not include it."""


def governance_of(
    client: Client, path: str, *, kind: str, columns: Sequence[str] = (), is_restricted: bool = False
) -> dict[str, object]:
    """Return the fields of what governs an object, without those that are empty or that the caller may not read. A
    caller for whom a table is restricted gets no lineage of it. `columns` are those of a table.
    """
    readers: dict[str, Callable[[], object]] = {"tags": lambda: [each.name for each in client.tags.on(path, kind=kind)]}
    if columns:
        readers["column_tags"] = lambda: column_tags(client, path, columns=columns)
    if kind in {"namespace", "table"}:
        readers["restrictions"] = lambda: [each.name for each in client.restrictions.list(path, kind=kind)]
    if kind in {"table", "view"} and not is_restricted:
        readers["written_by"] = lambda: _jobs(client, path)
    if kind == "table":
        readers["maintenance"] = lambda: sorted({each.kind for each in client.maintenance.explain(path).findings})
    fields: dict[str, object] = {}
    for name, read in readers.items():
        try:
            value = read() if _may_read(client, name, path=path, kind=kind) else None
        except (ClientError, ArgumentError):
            continue
        if value:
            fields[name] = value
    return fields


def column_tags(client: Client, path: str, *, columns: Sequence[str]) -> dict[str, list[str]]:
    """Return the names of the tags on a table's columns themselves, by column, without columns that have none.

    It costs a request for each tag of the metalake, or for each column if there are fewer.
    """
    names = [tag.name for tag in client.tags.list()]
    by_column: dict[str, list[str]] = {}
    if len(names) > len(columns):
        for column in columns:
            direct_tags = [tag.name for tag in client.tags.on(path, kind="table", column=column) if not tag.inherited]
            by_column |= {column: direct_tags} if direct_tags else {}
        return by_column
    table = tuple(display.parse(path))
    for name in names:
        for each in client.tags.objects(name):
            parts = (
                ()
                if each.type != "column"
                else tuple(display.parse(client.objects.path(each.full_name, kind="column")))
            )
            if parts[:-1] == table:
                by_column.setdefault(parts[-1], []).append(name)
    return by_column


def _may_read(client: Client, part: str, *, path: str, kind: str) -> bool:
    """Return whether the caller may read a part."""
    action = _NEEDED.get(part)
    return action is None or client.access.explain(action, path, kind=kind).decision.allowed


def _jobs(client: Client, path: str) -> list[str]:
    """Return the names of the pipelines and jobs that wrote an object, by its lineage."""
    graph = client.lineage.up(path)
    return sorted({assertion.job.name for edge in graph.edges for assertion in edge.said})
