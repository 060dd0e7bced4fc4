# SPDX-License-Identifier: Apache-2.0
"""Restricted tables: restricted users see a table's columns and snapshots, but none of its files.

Must not know any wire format. Restricted users may do no action that opens files (`access.restrictions.CLOSED`), so a
route that does not call this module refuses them. Routes that call it serve the table's metadata and its scans, as far
as the restrictions allow. Decision record 0093.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.formats.iceberg import metadata as iceberg_metadata
from limnos.formats.iceberg.field_ids import schema_of
from limnos.formats.iceberg.read_restrictions import BoundRestrictions, combine_restrictions, restrict_metadata
from limnos.model.decisions import SecurableChain
from limnos.model.entities import MetadataDocument
from limnos.model.errors import PermissionDenied
from limnos.names.path import Levels
from limnos.services.catalog.tables import table_find, table_load
from limnos.services.lookup.definer_rights import ViewChain
from limnos.services.request.catalog_storage import CatalogStorage, catalog_storage_of
from limnos.services.request.context import Context
from limnos.services.request.offloaded_work import is_heavy
from limnos.services.request.request_view import RequestView


class TableVisibility(NamedTuple):
    """A table's document. For a restricted caller also the restrictions with their names, and the catalog's storage."""

    document: MetadataDocument
    bound: BoundRestrictions | None = None
    place: CatalogStorage | None = None
    restrictions: tuple[str, ...] = ()


def table_visibility(request_view: RequestView, path: Levels, *, through: ViewChain = ()) -> TableVisibility:
    """Return the document of a table that the caller may load; for a restricted user, who may only scan it, with the
    restrictions.

    Raises NotFound and PermissionDenied as `table_load` does, and PermissionDenied if a restriction no longer fits the
    table.
    """
    try:
        return TableVisibility(table_load(request_view, path[:-1], path[-1], through))
    except PermissionDenied as refused:
        if not is_restricted(refused):
            raise
    return restricted_visibility(request_view, path)


def restricted_visibility(request_view: RequestView, path: Levels) -> TableVisibility:
    """Return a table's document and its restrictions for a restricted user. Raises NotFound, NotInUse,
    PermissionDenied.
    """
    table = table_find(request_view, path[:-1], path[-1], Action.TABLE_SCAN)
    document = request_view.document(table.entity.id)
    bound_restrictions = bound_for(request_view, request_view.user, chain=table.chain, document=document)
    names = restriction_names(request_view, request_view.user, chain=table.chain)
    return TableVisibility(document, bound_restrictions, catalog_storage_of(request_view), names)


def restrictable_chain(request_view: RequestView, path: Levels) -> SecurableChain:
    """Return a table that the caller may restrict, with its ancestors. Raises NotFound, NotInUse, PermissionDenied."""
    return table_find(request_view, path[:-1], path[-1], Action.RESTRICT).chain


def bound_for(
    request_view: RequestView, user: str, *, chain: SecurableChain, document: MetadataDocument
) -> BoundRestrictions:
    """Return the restrictions that apply to a user on a table. Raises PermissionDenied if one no longer fits it."""
    applying = [(each.restriction.name, each.restriction.terms) for each in request_view.bindings_of(user, chain)]
    return combine_restrictions(applying, schema_of(document.body), table_id=document.node_id)


def restriction_names(request_view: RequestView, user: str, *, chain: SecurableChain) -> tuple[str, ...]:
    """Return the names of the restrictions that apply to a user on a table, the nearest first."""
    return tuple(dict.fromkeys(each.restriction.name for each in request_view.bindings_of(user, chain)))


def is_restricted(refused: PermissionDenied) -> bool:
    """Return whether read restrictions were the reason of a denied access."""
    factors = getattr(refused.decision, "factors", ())
    return any(factor.kind == "restricted" for factor in factors)


async def document_for_caller(ctx: Context, visible_object: TableVisibility) -> MetadataDocument:
    """Return the document for the caller: for a restricted user, without locations and files."""
    document, bound_restrictions = visible_object.document, visible_object.bound
    if bound_restrictions is None:
        return document
    if is_heavy(document):
        (body,) = await ctx.services.offloader.do(
            "iceberg-restricted", document.body, msgspec.json.encode(bound_restrictions)
        )
        metadata = iceberg_metadata.decode(body)
    else:
        metadata = restrict_metadata(iceberg_metadata.decode(document.body), bound_restrictions)
        body = iceberg_metadata.encode(metadata)
    nowhere = str(metadata["location"])
    return msgspec.structs.replace(document, body=body, location=nowhere, metadata_location=f"{nowhere}/metadata.json")
