# SPDX-License-Identifier: Apache-2.0
"""Calls on filesets and their files (Gravitino REST).

A path has catalog, schema and name: fileset catalogs do not nest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from limnos.client.catalog.schemas import list_names, schema_url
from limnos.client.flow import Flow, Resource, S, call, segments, verb
from limnos.client.paths import schema_object_parts, shaped_parts
from limnos.client.values import AuditInfo, Parts


class Fileset(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A fileset: `managed` or `external`, with its named storage locations."""

    name: str
    type: str
    storage_location: str = ""
    storage_locations: dict[str, str] = {}
    comment: str | None = None
    properties: dict[str, str] = {}
    audit: AuditInfo = AuditInfo()


class FilesetFile(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """An entry of a fileset's directory. `last_modified` is in milliseconds since 1970."""

    name: str
    is_dir: bool
    size: int = 0
    last_modified: int = 0
    path: str = ""


class Filesets(Resource[S]):
    """Calls on the filesets of the client's metalake and on their files."""

    def _url(self, path: str | Sequence[str], *rest: str) -> str:
        catalog, schema, name = schema_object_parts(path, kind="fileset")
        return f"{schema_url(self.scope, catalog, schema)}{segments('filesets', name, *rest)}"

    @verb
    def list(self, schema: str | Sequence[str]) -> Flow[tuple[Parts, ...]]:
        """List the filesets of a schema, as full paths."""
        parts = shaped_parts(schema, "catalog", "schema")
        return tuple((*parts, name) for name in (yield from list_names(f"{schema_url(self.scope, *parts)}/filesets")))

    @verb
    def get(self, path: str | Sequence[str]) -> Flow[Fileset]:
        """Load a fileset with its storage locations."""
        return call("GET", self._url(path), answer=Fileset, field="fileset")

    @verb
    def create(
        self,
        path: str | Sequence[str],
        *,
        external: bool = False,
        locations: Mapping[str, str] | None = None,
        comment: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Flow[Fileset]:
        """Create a fileset, owned by the caller. If no locations are given, its schema or catalog determines them."""
        catalog, schema, name = schema_object_parts(path, kind="fileset")
        body = {
            "name": name,
            "type": "external" if external else "managed",
            "storageLocations": dict(locations or {}),
            "comment": comment,
            "properties": dict(properties or {}),
        }
        url = f"{schema_url(self.scope, catalog, schema)}/filesets"
        return call("POST", url, answer=Fileset, field="fileset", body=body)

    @verb
    def delete(self, path: str | Sequence[str]) -> Flow[bool]:
        """Drop a fileset.

        Returns whether it existed. Files of a managed fileset are deleted when it can no longer be restored.
        """
        return call("DELETE", self._url(path), answer=bool, field="dropped")

    @verb
    def files(
        self, path: str | Sequence[str], sub_path: str = "/", *, location: str | None = None
    ) -> Flow[tuple[FilesetFile, ...]]:
        """List the entries of a directory of a fileset, directories first."""
        query = {"sub_path": sub_path, "location_name": location}
        return call("GET", self._url(path, "files"), answer=tuple[FilesetFile, ...], field="files", query=query)

    @verb
    def location(self, path: str | Sequence[str], sub_path: str = "/", *, location: str | None = None) -> Flow[str]:
        """Return the URI of a file or directory of a fileset."""
        query = {"sub_path": sub_path, "location_name": location}
        return call("GET", self._url(path, "location"), answer=str, field="fileLocation", query=query)
