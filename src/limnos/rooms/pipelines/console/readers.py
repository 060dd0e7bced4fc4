# SPDX-License-Identifier: Apache-2.0
"""Objects that read a table or view, as a list for the page that drops it.

The service decides which objects are hidden.
"""

from __future__ import annotations

from limnos.model.errors import LimnosError
from limnos.model.kinds import Kind
from limnos.names import display
from limnos.rooms.console.http.addresses import ObjectAddress
from limnos.rooms.console.http.page_requests import PageRequest
from limnos.rooms.console.http.sheets import Sheet, SheetCell, SheetColumn
from limnos.rooms.pipelines.services.lineage_graph import GraphQuery, LineageVertex, lineage_graph

LISTED_MAX = 50


async def readers_sheets(page_request: PageRequest, address: ObjectAddress) -> tuple[Sheet, ...]:
    """Return a list of the objects that read a table or view by its lineage; empty if there are none.

    It is also empty if the lineage cannot be read: such an error must not prevent the drop.
    """
    if address.kind not in (Kind.TABLE, Kind.VIEW):
        return ()
    query = GraphQuery(
        metalake=address.metalake, path=(address.catalog, *address.levels), column=None, up=False, depth=1
    )
    try:
        part = await lineage_graph(page_request.ctx, query)
    except LimnosError:
        return ()
    readers = part.vertices[1:]
    rows = [_row(page_request, address.metalake, vertex=each) for each in readers if each.kind != "hidden"]
    hidden_count = len(readers) - len(rows)
    if not readers:
        return ()
    sentences = [
        f"The first {LISTED_MAX} of {len(rows)} are listed." if len(rows) > LISTED_MAX else "",
        f"You may not see {hidden_count} more." if hidden_count and rows else "",
        "Limits cut this list: there are more." if not part.is_whole else "",
    ]
    note = f"{hidden_count} object{' reads' if hidden_count == 1 else 's read'} it that you may not see."
    return (
        Sheet(
            title="Objects that read it",
            columns=(SheetColumn(text="Object"), SheetColumn(text="Kind")),
            rows=tuple(rows[:LISTED_MAX]),
            note=note,
            more=" ".join(filter(None, sentences)),
        ),
    )


def _row(page_request: PageRequest, metalake: str, *, vertex: LineageVertex) -> tuple[SheetCell, ...]:
    if vertex.path is None:
        name = "" if vertex.outside is None else vertex.outside.name
        return SheetCell(text=name, is_name=True), SheetCell(text="outside of the lake")
    kind = Kind.VIEW if vertex.kind == Kind.VIEW.word else Kind.TABLE
    href = page_request.base + ObjectAddress(kind, metalake, vertex.path[0], vertex.path[1:]).path
    return SheetCell(text=display.render(vertex.path), href=href, is_name=True), SheetCell(text=vertex.kind)
