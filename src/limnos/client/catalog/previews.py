# SPDX-License-Identifier: Apache-2.0
"""Calls that read the first rows of tables, and list and read files of filesets (own API).

Paths start with the catalog.
"""

from __future__ import annotations

from collections.abc import Sequence

from limnos.client.flow import Flow, Resource, S, call, verb
from limnos.client.paths import parts_of
from limnos.client.values import FilePreview, FilesetPage, TablePreview
from limnos.names import display


class Previews(Resource[S]):
    """Calls that read the first rows of tables and the files of filesets."""

    @verb
    def head(
        self, path: str | Sequence[str], *, rows: int = 100, columns: Sequence[str] = (), snapshot_id: int | None = None
    ) -> Flow[TablePreview]:
        """Return up to `rows` rows of a table, after the filters and masks that apply to the caller.

        If `columns` is empty, the rows have the first 60 columns. They are rows of the current snapshot, or of
        `snapshot_id`, which for a Lance table is a version.
        """
        parts = parts_of(path, least=2)
        query = {
            "table": display.render(parts[1:]),
            "rows": str(rows),
            "columns": ",".join(columns) or None,
            "snapshot": None if snapshot_id is None else str(snapshot_id),
        }
        return (
            yield from call(
                "GET", self.own_url("catalogs", parts[0], "tables", "preview"), answer=TablePreview, query=query
            )
        )

    @verb
    def entries(
        self,
        fileset: str | Sequence[str],
        directory: str = "/",
        *,
        location: str | None = None,
        after: str | None = None,
        limit: int = 200,
    ) -> Flow[FilesetPage]:
        """List a page of the entries of a directory of a fileset, directories first."""
        parts = parts_of(fileset, least=3)
        query = {
            "fileset": display.render(parts[1:]),
            "directory": directory,
            "location": location,
            "after": after,
            "limit": str(limit),
        }
        url = self.own_url("catalogs", parts[0], "filesets", "entries")
        return (yield from call("GET", url, answer=FilesetPage, query=query))

    @verb
    def file(
        self, fileset: str | Sequence[str], file: str, *, location: str | None = None, rows: int = 100
    ) -> Flow[FilePreview]:
        """Return the beginning of a fileset's file: rows of Parquet, CSV and JSON, else text."""
        parts = parts_of(fileset, least=3)
        query = {"fileset": display.render(parts[1:]), "file": file, "location": location, "rows": str(rows)}
        url = self.own_url("catalogs", parts[0], "filesets", "preview")
        return (yield from call("GET", url, answer=FilePreview, query=query))
