# SPDX-License-Identifier: Apache-2.0
"""Calls on objects of declared kinds (Limnos' own API), such as `client.dashboards`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Generic, TypeVar

import msgspec

from limnos.client.flow import ClientScope, Flow, Resource, S, call, verb
from limnos.client.paths import declared_url, parts_of
from limnos.client.values import Json, Parts
from limnos.model.declared_kinds import ObjectFields

F = TypeVar("F", bound=ObjectFields)


class DeclaredObject(msgspec.Struct, Generic[F], frozen=True, kw_only=True):
    """An object of a declared kind, with its own `fields`. `path` starts with the catalog."""

    name: str
    path: Parts
    fields: F
    comment: str | None = None
    properties: dict[str, str] = {}
    created_by: str = ""
    created_at: str = ""
    modified_by: str | None = None
    modified_at: str | None = None


class DeclaredObjects(Resource[S], Generic[S, F]):
    """Calls on the objects of one declared kind. A path has a catalog, namespaces and a name."""

    __slots__ = ("fields", "plural")

    def __init__(self, sender: S, scope: ClientScope, *, plural: str, fields: type[F]) -> None:
        super().__init__(sender, scope)
        self.plural, self.fields = plural, fields

    @verb
    def list(self, namespace: str | Sequence[str]) -> Flow[tuple[DeclaredObject[F], ...]]:
        """List the objects of a namespace that are visible to the caller."""
        url = declared_url(self.scope.metalake, self.plural, namespace=parts_of(namespace, least=2))
        rows = yield from call("GET", url, answer=tuple[Json, ...], field=self.plural)
        return tuple(self._object(each) for each in rows)

    @verb
    def get(self, path: str | Sequence[str]) -> Flow[DeclaredObject[F]]:
        """Load an object."""
        return self._object((yield from call("GET", self._url(path), answer=Json)))

    @verb
    def create(
        self,
        path: str | Sequence[str],
        fields: F | None = None,
        *,
        comment: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Flow[DeclaredObject[F]]:
        """Create an object, owned by the caller."""
        parts = parts_of(path, least=3)
        own_fields = {} if fields is None else msgspec.structs.asdict(fields)
        body = {"name": parts[-1], "comment": comment, "properties": dict(properties or {}), **own_fields}
        url = declared_url(self.scope.metalake, self.plural, namespace=parts[:-1])
        return self._object((yield from call("POST", url, answer=Json, body=body)))

    @verb
    def alter(
        self,
        path: str | Sequence[str],
        *,
        name: str | None = None,
        comment: str | None = None,
        clears_comment: bool = False,
        sets: Mapping[str, str] | None = None,
        removes: Iterable[str] = (),
        fields: Mapping[str, object] | None = None,
    ) -> Flow[DeclaredObject[F]]:
        """Rename an object, change its comment and properties, and set some of its own `fields`."""
        body = {
            "name": name,
            "comment": comment,
            "clears_comment": clears_comment or None,
            "sets": dict(sets or {}) or None,
            "removes": [*removes] or None,
            **(fields or {}),
        }
        return self._object((yield from call("PUT", self._url(path), answer=Json, body=body)))

    @verb
    def drop(self, path: str | Sequence[str]) -> Flow[None]:
        """Drop an object; it stays in the trash for some time. Raises NotFoundError if there is none."""
        yield from call("DELETE", self._url(path), answer=Json)

    def _url(self, path: str | Sequence[str]) -> str:
        *namespace, name = parts_of(path, least=3)
        return declared_url(self.scope.metalake, self.plural, namespace=namespace, name=name)

    def _object(self, row: Json) -> DeclaredObject[F]:
        own_fields = {name: row.pop(name) for name in self.fields.__struct_fields__ if name in row}
        common = {name: value for name, value in row.items() if name in DeclaredObject.__struct_fields__}
        answer = DeclaredObject[self.fields]  # type: ignore[name-defined]
        return msgspec.convert({**common, "fields": own_fields}, answer)
