"""Tables of a schema, of whichever format: the same objects that Iceberg REST and Lance REST serve, under the same rules. List and load.

May import `access`, `formats`, `model`, `names`, `services` and this package. Tables are made and changed over the protocol of their format.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from limnos.access.actions import Action
from limnos.http.gravitino import dto, lance_columns
from limnos.http.gravitino.columns import columns_of
from limnos.http.gravitino.dto import compact, identifiers, ok
from limnos.http.gravitino.partitions import partitioning_of, sort_orders_of
from limnos.http.gravitino.told import names_of, told
from limnos.http.routing import Route
from limnos.services import lance_describing, tables
from limnos.services.lance_describing import At
from limnos.services.lance_lists import tables_of
from limnos.services.lance_roots import levels_within
from limnos.services.objects import codec_of
from limnos.services.pages import EVERY
from limnos.services.scene import Scope
from limnos.services.table_formats import LANCE, format_of

if TYPE_CHECKING:
    from limnos.formats.iceberg.json_types import Json
    from limnos.http.application import Handler
    from limnos.http.request import Request
    from limnos.http.response import Response
    from limnos.model.entities import Document, Node
    from limnos.names.path import Levels
    from limnos.services.context import Context
    from limnos.services.lance_describing import Told
    from limnos.services.scene import Scene

COMMENT: Final = "comment"
_NONE: Final = {"strategy": "none", "number": 0, "funcArgs": []}


class _Stored(msgspec.Struct, rename="kebab"):
    """What is told of an Iceberg table's metadata."""

    format_version: int
    location: str
    current_schema_id: int
    schemas: list[dict[str, object]]
    default_spec_id: int = 0
    partition_specs: list[dict[str, object]] = []
    default_sort_order_id: int = 0
    sort_orders: list[dict[str, object]] = []
    properties: dict[str, str] = {}


async def tables_list(request: Request, ctx: Context) -> Response:
    """Answer the tables of a schema that the caller may see."""
    metalake, catalog, schema = names_of(request)

    def read(scene: Scene) -> list[str]:
        levels = levels_within(scene, codec_of(scene).split(schema))
        if format_of(scene) == LANCE:
            return tables_of(scene, levels, asked=EVERY).texts()
        return tables.tables_list(scene, levels).texts()

    return identifiers([metalake, catalog, schema], await ctx.read(Scope(metalake, catalog), read))


async def table_load(request: Request, ctx: Context) -> Response:
    """Answer one table with its columns; a Lance table's are read from its files."""
    metalake, catalog, schema, name = names_of(request)
    scope = Scope(metalake, catalog)

    def read(scene: Scene) -> Levels | Json:
        levels = levels_within(scene, codec_of(scene).split(schema))
        if format_of(scene) == LANCE:
            return (*levels, name)
        node = tables.table_find(scene, levels, name, Action.TABLE_LOAD).entity
        return _iceberg_table(node, scene.document(node.id))

    found = await ctx.read(scope, read)
    if isinstance(found, dict):
        return ok(table=found)
    state = await lance_describing.table_describe(ctx, scope, levels=found, at=At(), detailed=True, looks=False)
    return ok(table=_lance_table(state))


def _iceberg_table(node: Node, document: Document) -> Json:
    stored = msgspec.json.decode(document.body, type=_Stored)
    schema = next(each for each in stored.schemas if each.get("schema-id") == stored.current_schema_id)
    specs = [each for each in stored.partition_specs if each.get("spec-id") == stored.default_spec_id]
    orders = [each for each in stored.sort_orders if each.get("order-id") == stored.default_sort_order_id]
    properties = {**stored.properties, "format": f"iceberg v{stored.format_version}", "location": stored.location}
    return _table(
        node, properties, columns=columns_of(schema),
        partitioning=partitioning_of(specs[0], schema) if specs else [],
        sort_orders=sort_orders_of(orders[0], schema) if orders else [],
    )  # fmt: skip


def _lance_table(state: Told) -> Json:
    """Tell a Lance table; one without data has no columns yet."""
    table, found = state.table, state.found
    properties = {**table.record.properties, "format": LANCE, "location": table.location}
    if found is not None:
        properties["lance.version"] = str(found.version)
    columns = [] if found is None else lance_columns.columns_of(found.logical_fields)
    return _table(table.node, properties, columns=columns, partitioning=[], sort_orders=[])


def _table(
    node: Node, properties: dict[str, str], *, columns: list[Json], partitioning: list[Json], sort_orders: list[Json]
) -> Json:
    comment = properties.pop(COMMENT, None)
    return compact(
        name=node.name, comment=comment, columns=columns, properties=properties, audit=dto.audit(node),
        distribution=_NONE, sortOrders=sort_orders, partitioning=partitioning, indexes=[],
    )  # fmt: skip


_LIST = "Failed to operate table(s) operation [LIST] under schema [{2}]"
_ONE = "Failed to operate table(s) [{3}] operation [LOAD] under schema [{2}]"
ROUTES: tuple[Route[Handler], ...] = (
    Route("GET", "/metalakes/{m}/catalogs/{c}/schemas/{s}/tables", told(_LIST, tables_list), "list-tables"),
    Route("GET", "/metalakes/{m}/catalogs/{c}/schemas/{s}/tables/{t}", told(_ONE, table_load), "load-table"),
)
