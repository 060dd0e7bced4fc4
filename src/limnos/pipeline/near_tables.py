# SPDX-License-Identifier: Apache-2.0
"""Tables of a catalog whose paths are near to that of a missing one, for messages. Reads names only."""

from __future__ import annotations

import difflib
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from limnos.client.errors import ClientError
from limnos.names import display
from limnos.pipeline.declared_values import Parts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from limnos.client import Client

_LISTED_MAX: Final = 500
_HITS_MAX: Final = 5
_CUTOFF: Final = 0.6
_READ: Final = frozenset({"table", "view"})


def near_tables(client: Client, table: Parts) -> tuple[str, ...]:
    """Return paths of tables and views that the caller may list: those in the namespace that a path names, or in the
    one with the most similar name, and those that a search by the table's name finds. Empty if the server cannot say.
    """
    names: dict[Parts, None] = {}
    for find in (_near_by_listing, _near_by_search):
        with suppress(ClientError):
            names |= dict.fromkeys(find(client, table))
    return tuple(display.render(name) for name in names if name != table)


def _near_by_listing(client: Client, table: Parts) -> Iterator[Parts]:
    at = table[:1]
    for part in table[1:-1]:
        namespace_names = [each.name for each in client.children.page(at, kind="namespace", limit=_LISTED_MAX).children]
        near = (
            [part] if part in namespace_names else difflib.get_close_matches(part, namespace_names, n=1, cutoff=_CUTOFF)
        )
        if not near:
            return
        at = (*at, near[0])
    for each in client.children.page(at, limit=_LISTED_MAX).children:
        if each.kind in _READ:
            yield (*at, each.name)


def _near_by_search(client: Client, table: Parts) -> Iterator[Parts]:
    for hit in client.searches.find(table[-1], limit=_HITS_MAX).hits:
        if hit.kind in _READ:
            yield tuple(hit.path)
