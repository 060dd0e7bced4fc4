# SPDX-License-Identifier: Apache-2.0
"""Calls on models, their versions and aliases (Gravitino REST).

A path has catalog, schema and name: model catalogs do not nest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from limnos.client.catalog.schemas import list_names, schema_url
from limnos.client.errors import ArgumentError
from limnos.client.flow import Flow, Resource, S, call, request, segments, verb
from limnos.client.paths import schema_object_parts, shaped_parts
from limnos.client.values import AuditInfo, Parts


class Model(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A model. `latest_version` is the number that its next version will get, as in Gravitino."""

    name: str
    comment: str | None = None
    properties: dict[str, str] = {}
    latest_version: int = 0
    audit: AuditInfo = AuditInfo()


class ModelVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a model: the named URIs of its files, and its aliases."""

    version: int
    uris: dict[str, str] = {}
    aliases: tuple[str, ...] = ()
    comment: str | None = None
    properties: dict[str, str] | None = None
    audit: AuditInfo = AuditInfo()


class Models(Resource[S]):
    """Calls on the machine-learning models of the client's metalake and on their versions."""

    def _url(self, path: str | Sequence[str], *rest: str) -> str:
        catalog, schema, name = schema_object_parts(path, kind="model")
        return f"{schema_url(self.scope, catalog, schema)}{segments('models', name, *rest)}"

    @verb
    def list(self, schema: str | Sequence[str]) -> Flow[tuple[Parts, ...]]:
        """List the models of a schema, as full paths."""
        parts = shaped_parts(schema, "catalog", "schema")
        return tuple((*parts, name) for name in (yield from list_names(f"{schema_url(self.scope, *parts)}/models")))

    @verb
    def get(self, path: str | Sequence[str]) -> Flow[Model]:
        """Load a model, without its versions."""
        return call("GET", self._url(path), answer=Model, field="model")

    @verb
    def register(
        self, path: str | Sequence[str], *, comment: str | None = None, properties: Mapping[str, str] | None = None
    ) -> Flow[Model]:
        """Create a model without versions, owned by the caller."""
        catalog, schema, name = schema_object_parts(path, kind="model")
        body = {"name": name, "comment": comment, "properties": dict(properties or {})}
        return call("POST", f"{schema_url(self.scope, catalog, schema)}/models", answer=Model, field="model", body=body)

    @verb
    def delete(self, path: str | Sequence[str]) -> Flow[bool]:
        """Delete a model with its versions. Returns whether it existed."""
        return call("DELETE", self._url(path), answer=bool, field="dropped")

    @verb
    def versions(self, path: str | Sequence[str]) -> Flow[tuple[ModelVersion, ...]]:
        """List the versions of a model, with their URIs and aliases."""
        url = self._url(path, "versions") + "?details=true"
        return call("GET", url, answer=tuple[ModelVersion, ...], field="infos")

    @verb
    def version(self, path: str | Sequence[str], which: int | str) -> Flow[ModelVersion]:
        """Load a version by its number or an alias."""
        kind = "versions" if isinstance(which, int) else "aliases"
        return call("GET", self._url(path, kind, str(which)), answer=ModelVersion, field="modelVersion")

    @verb
    def link(
        self,
        path: str | Sequence[str],
        uris: Mapping[str, str],
        *,
        aliases: Iterable[str] = (),
        comment: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Flow[None]:
        """Add a version with the URIs of its files, by name. A URI with an empty name gets the name `unknown`.

        A text in the place of the aliases is one alias. Raises ArgumentError for a text in the place of the URIs.
        """
        stated: object = uris
        if isinstance(stated, str):
            raise ArgumentError("give the URIs of a version by name, as {'model': 's3://lake/model.bin'}")
        aliases = (aliases,) if isinstance(aliases, str) else aliases
        body = {"uris": dict(uris), "aliases": [*aliases], "comment": comment, "properties": dict(properties or {})}
        yield request("POST", self._url(path, "versions"), body=body)

    @verb
    def set_aliases(
        self, path: str | Sequence[str], which: int | str, *, add: Iterable[str] = (), remove: Iterable[str] = ()
    ) -> Flow[ModelVersion]:
        """Add aliases to a version, given by its number or an alias, and remove aliases from it.

        An alias belongs to one version: remove it from the former one before you add it to another.
        """
        kind = "versions" if isinstance(which, int) else "aliases"
        update = {"@type": "updateAliases", "aliasesToAdd": [*add], "aliasesToRemove": [*remove]}
        url = self._url(path, kind, str(which))
        return call("PUT", url, answer=ModelVersion, field="modelVersion", body={"updates": [update]})

    @verb
    def unlink(self, path: str | Sequence[str], which: int | str) -> Flow[bool]:
        """Delete a version by its number or an alias. Returns whether it existed."""
        kind = "versions" if isinstance(which, int) else "aliases"
        return call("DELETE", self._url(path, kind, str(which)), answer=bool, field="dropped")
