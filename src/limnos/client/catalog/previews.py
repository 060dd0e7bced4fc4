"""Calls that read the first rows of tables (own API).

May import `names` and this room. Paths start with the catalog.
"""

from __future__ import annotations

from collections.abc import Sequence

from limnos.client.flow import Flow, Resource, S, call, verb
from limnos.client.paths import parts_of
from limnos.client.values import TablePreview
from limnos.names import display


class Previews(Resource[S]):
    """The first rows of tables."""

    @verb
    def head(
        self, path: str | Sequence[str], *, rows: int = 100, columns: Sequence[str] = (), snapshot_id: int | None = None
    ) -> Flow[TablePreview]:
        """Return up to `rows` rows of a table, after the filters and masks that apply to the caller.

        If no columns are named, the first 60. They are of the current snapshot, or of a given one.
        """
        parts = parts_of(path, least=3)
        query = {
            "table": display.render(parts[1:]), "rows": str(rows), "columns": ",".join(columns) or None,
            "snapshot": None if snapshot_id is None else str(snapshot_id),
        }  # fmt: skip
        return (
            yield from call(
                "GET", self.own_url("catalogs", parts[0], "tables", "preview"), answer=TablePreview, query=query
            )
        )
