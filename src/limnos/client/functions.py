"""Calls on functions that are registered for engines (Gravitino REST).

May import this room. A path is a catalog, namespaces and a name; what a definition says is Gravitino's JSON, as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from limnos.client.flow import Flow, Resource, S, call, segments, verb
from limnos.client.paths import parts_of
from limnos.client.schemas import list_names, schema_url
from limnos.client.server import DEFAULT_SEPARATOR, separator
from limnos.client.values import Audit, Json, Parts


class Function(msgspec.Struct, frozen=True, rename="camel"):
    """A function: `scalar`, `aggregate` or `table`, with a definition for each way to call it."""

    name: str
    function_type: str = "scalar"
    deterministic: bool = False
    definitions: tuple[Json, ...] = ()
    comment: str | None = None
    audit: Audit = Audit()


class Functions(Resource[S]):
    """The functions of the client's metalake."""

    __slots__ = ()

    def _url(self, namespace: Parts, *name: str) -> Flow[str]:
        glue = (yield from separator(self.scope)) if len(namespace) > 2 else DEFAULT_SEPARATOR
        return f"{schema_url(self.scope, namespace[0], glue.join(namespace[1:]))}{segments('functions', *name)}"

    @verb
    def list(self, namespace: str | Sequence[str]) -> Flow[tuple[Parts, ...]]:
        """List the functions of a namespace, as whole paths."""
        parts = parts_of(namespace, least=2)
        url = yield from self._url(parts)
        return tuple((*parts, name) for name in (yield from list_names(url)))

    @verb
    def get(self, path: str | Sequence[str]) -> Flow[Function]:
        """Load a function."""
        *namespace, name = parts_of(path, least=3)
        url = yield from self._url(tuple(namespace), name)
        return (yield from call("GET", url, answer=Function, field="function"))

    @verb
    def register(
        self, path: str | Sequence[str], definitions: Sequence[Json], *, function_type: str = "scalar",
        deterministic: bool = False, comment: str | None = None,
    ) -> Flow[Function]:  # fmt: skip
        """Register a function, which the caller then owns."""
        *namespace, name = parts_of(path, least=3)
        body = {
            "name": name, "functionType": function_type, "deterministic": deterministic, "definitions": [*definitions], "comment": comment,
        }  # fmt: skip
        url = yield from self._url(tuple(namespace))
        return (yield from call("POST", url, answer=Function, field="function", body=body))

    @verb
    def delete(self, path: str | Sequence[str]) -> Flow[bool]:
        """Drop a function and tell whether it was there."""
        *namespace, name = parts_of(path, least=3)
        url = yield from self._url(tuple(namespace), name)
        return (yield from call("DELETE", url, answer=bool, field="dropped"))
