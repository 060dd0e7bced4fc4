# SPDX-License-Identifier: Apache-2.0
"""Calls on restrictions of tables and namespaces (own API)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from limnos.client.catalog.objects import object_name
from limnos.client.flow import Flow, Resource, S, call, request, verb
from limnos.client.paths import TYPES
from limnos.client.values import NamedPrincipals, ReadRestriction


class Restrictions(Resource[S]):
    """Calls on read restrictions: row filters and column masks."""

    @verb
    def list(self, path: str | Sequence[str], *, kind: str) -> Flow[tuple[ReadRestriction, ...]]:
        """List the restrictions of a `table` or `namespace`, including the restrictions of its parent namespaces."""
        url = yield from self._url(path, kind)
        return (yield from call("GET", url, answer=tuple[ReadRestriction, ...], field="restrictions"))

    @verb
    def set(
        self,
        name: str,
        path: str | Sequence[str],
        *,
        kind: str,
        filter: str | Mapping[str, object] | None = None,
        masks: Mapping[str, str] | None = None,
        to: NamedPrincipals | None = None,
        unless: NamedPrincipals | None = None,
    ) -> Flow[None]:
        """Set a restriction: a row `filter`, and `masks` by column.

        It applies to the principals in `to` (all users if that is empty), but never to the principals in `unless`.
        """
        body = {
            "filter": filter,
            "masks": dict(masks or {}),
            "to": to or NamedPrincipals(),
            "except": unless or NamedPrincipals(),
        }
        yield request("PUT", (yield from self._url(path, kind, name)), body=body)

    @verb
    def remove(self, name: str, path: str | Sequence[str], *, kind: str) -> Flow[bool]:
        """Remove a restriction from a table or namespace. Returns whether it existed."""
        return (yield from call("DELETE", (yield from self._url(path, kind, name)), answer=bool, field="removed"))

    def _url(self, path: str | Sequence[str], kind: str, *more: str) -> Flow[str]:
        name = yield from object_name(self.scope, path, kind=kind)
        return self.own_url("objects", TYPES[kind], name, "restrictions", *more)
