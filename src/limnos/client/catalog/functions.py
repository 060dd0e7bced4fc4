# SPDX-License-Identifier: Apache-2.0
"""Calls on functions registered for engines (Gravitino REST).

A path has a catalog, namespaces and a name. Definitions are Gravitino's JSON, unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from limnos.client.catalog.schemas import list_names, schema_url
from limnos.client.flow import Flow, Resource, S, call, segments, verb
from limnos.client.paths import parts_of
from limnos.client.server import DEFAULT_SEPARATOR, separator
from limnos.client.values import AuditInfo, Json, Parts


class Function(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A function: `scalar`, `aggregate` or `table`, with a definition for each signature."""

    name: str
    function_type: str = "scalar"
    deterministic: bool = False
    definitions: tuple[Json, ...] = ()
    comment: str | None = None
    audit: AuditInfo = AuditInfo()


class Functions(Resource[S]):
    """Calls on the user-defined functions of the client's metalake."""

    def _url(self, namespace: Parts, *name: str) -> Flow[str]:
        level_separator = (yield from separator(self.scope)) if len(namespace) > 2 else DEFAULT_SEPARATOR
        return (
            f"{schema_url(self.scope, namespace[0], level_separator.join(namespace[1:]))}{segments('functions', *name)}"
        )

    @verb
    def list(self, namespace: str | Sequence[str]) -> Flow[tuple[Parts, ...]]:
        """List the functions of a namespace, as full paths."""
        parts = parts_of(namespace, least=2)
        url = yield from self._url(parts)
        return tuple((*parts, name) for name in (yield from list_names(url)))

    @verb
    def get(self, path: str | Sequence[str]) -> Flow[Function]:
        """Load a function with its definitions."""
        *namespace, name = parts_of(path, least=3)
        url = yield from self._url(tuple(namespace), name)
        return (yield from call("GET", url, answer=Function, field="function"))

    @verb
    def register(
        self,
        path: str | Sequence[str],
        definitions: Sequence[Json],
        *,
        function_type: str = "scalar",
        deterministic: bool = False,
        comment: str | None = None,
    ) -> Flow[Function]:
        """Register a function with a definition for each signature, owned by the caller."""
        *namespace, name = parts_of(path, least=3)
        body = {
            "name": name,
            "functionType": function_type,
            "deterministic": deterministic,
            "definitions": [*definitions],
            "comment": comment,
        }
        url = yield from self._url(tuple(namespace))
        return (yield from call("POST", url, answer=Function, field="function", body=body))

    @verb
    def delete(self, path: str | Sequence[str]) -> Flow[bool]:
        """Drop a function. Returns whether it existed."""
        *namespace, name = parts_of(path, least=3)
        url = yield from self._url(tuple(namespace), name)
        return (yield from call("DELETE", url, answer=bool, field="dropped"))
