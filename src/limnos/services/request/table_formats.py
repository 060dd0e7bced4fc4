# SPDX-License-Identifier: Apache-2.0
"""Table formats: the format of a catalog's tables, and refusals of requests by protocols of another format.

Decision record 0043. Must not know any wire format. A catalog's provider decides the format, so that protocols need not
inspect each table. A protocol neither lists nor loads tables of another format. In Gravitino's API a virtual schema
represents the root of a Lance catalog, for tables directly in the catalog; a real namespace of that name takes
precedence.
"""

from __future__ import annotations

from typing import Final

from limnos.access.actions import Action
from limnos.model.decisions import ChainLink
from limnos.model.entities import Node
from limnos.model.errors import BadRequest, NotFound, UnsupportedOperation
from limnos.model.kind_table import ONLY_KINDS, may_contain, row_of
from limnos.model.kinds import REST_PROVIDERS, Kind
from limnos.names.iceberg import render
from limnos.names.path import Levels
from limnos.services.request import catalog_traits
from limnos.services.request.catalog_traits import NO_TABLES
from limnos.services.request.request_view import RequestView

ICEBERG: Final = catalog_traits.ICEBERG
LANCE: Final = "lance"
SOURCE: Final = catalog_traits.SOURCE
_FORMAT_ADVICE: Final = {
    ICEBERG: "an Iceberg table: open it over Iceberg REST",
    LANCE: "a Lance table: open it over Lance REST",
    SOURCE: "a table of another system: describe it over Gravitino REST, and open it in that system",
}
_FORMAT_DESCRIPTIONS: Final = {
    ICEBERG: "Iceberg tables, which are created over Iceberg REST",
    LANCE: "Lance tables, which are created over Lance REST",
    SOURCE: "tables of another system, which are served over Gravitino REST",
}


def format_of(request_view: RequestView) -> str:
    """Return the format of the tables in the request's catalog; `NO_TABLES` if it cannot contain tables."""
    return request_view.traits.table_format


def is_sourced(request_view: RequestView) -> bool:
    """Return whether the source of the request's catalog is an external system."""
    traits = request_view.settled.traits
    return traits is not None and traits.is_sourced


class ExternalCatalogError(UnsupportedOperation):
    """The object is in an external system, so the request must be served by that system."""

    def __init__(self, message: str, *, provider: str) -> None:
        super().__init__(message)
        self.provider = provider


def refuse_sourced(
    request_view: RequestView, kind: Kind, *, levels: Levels, action: Action, probe: Action | None = None
) -> None:
    """Refuse a request on a catalog of an external system that the server can serve only for objects of its own tree.

    Args:
        request_view: The request view of the catalog.
        kind: The kind of the object.
        levels: The levels of the object's name.
        action: The action on the object.
        probe: An alternative action: a caller who may perform it may also learn that the object is missing in the
            source.

    Raises:
        ExternalCatalogError: The catalog's source is an external system, and the caller may perform `action` or
            `probe`.
        PermissionDenied: The caller may perform neither.
    """
    traits = request_view.settled.traits
    if traits is None or not traits.is_sourced:
        return
    node, chain = request_view.find(levels, kind)
    full = chain if node is not None else (ChainLink.absent(kind, levels[-1]), *chain)
    if probe is None or not request_view.decide(probe, full).allowed:
        request_view.require(action, full)
    raise _external_catalog_error(request_view)


def is_federated(request_view: RequestView) -> bool:
    """Return whether the source of the request's catalog is another Iceberg catalog."""
    traits = request_view.settled.traits
    return traits is not None and traits.is_federated


def refuse_federated(request_view: RequestView) -> None:
    """Refuse a request on a federated Iceberg catalog that the server can serve only for objects of its own tree.

    The calling function has already made the access decision. Raises ExternalCatalogError if the catalog is federated.
    """
    traits = request_view.settled.traits
    if traits is not None and traits.is_federated:
        raise _external_catalog_error(request_view)


def _external_catalog_error(request_view: RequestView) -> ExternalCatalogError:
    provider = request_view.catalog_record.provider
    federated = "its schemas, tables and views are served over Iceberg REST and Gravitino REST"
    text = federated if provider in REST_PROVIDERS else "its schemas and tables are served over Gravitino REST"
    return ExternalCatalogError(
        f"Catalog {request_view.catalog.name} of provider {provider} connects to another system: only {text}",
        provider=provider,
    )


def can_contain(request_view: RequestView, kind: Kind) -> bool:
    """Return whether the request's catalog can contain objects of a kind, by the kind's row in `model.kind_table`."""
    return may_contain(kind, request_view.catalog_record.provider)


def require_containable(request_view: RequestView, kind: Kind) -> None:
    """Refuse to create an object in a catalog of a type that cannot contain it, or as `refuse_create` does.

    Raises UnsupportedOperation in these cases.
    """
    if not can_contain(request_view, kind):
        provider, holding = request_view.catalog_record.provider, row_of(kind).catalogs or ()
        raise UnsupportedOperation(
            f"Catalog {request_view.catalog.name} of provider {provider} cannot contain {kind.word}s: "
            f"choose a catalog of provider {' or '.join(holding)}"
        )
    refuse_create(request_view)


def least_levels(request_view: RequestView) -> int:
    """Return the minimum number of levels in a table's name: one for Lance, whose tables may lie directly in the
    catalog.
    """
    return 1 if format_of(request_view) == LANCE else 2


def require_format(request_view: RequestView, expected: str) -> None:
    """Refuse to create an object in a catalog whose tables have another format.

    Raises BadRequest for tables of another format or a catalog without tables, UnsupportedOperation for a catalog of a
    directory or external system.
    """
    traits = request_view.traits
    if traits.is_federated:
        raise _external_catalog_error(request_view)
    table_format = traits.table_format
    if table_format == NO_TABLES:
        word = ONLY_KINDS[traits.record.provider].word
        raise BadRequest(
            f"Catalog {request_view.catalog.name} contains {word}s and no tables: choose another catalog for this"
        )
    if table_format != expected:
        raise BadRequest(
            f"Catalog {request_view.catalog.name} contains {_FORMAT_DESCRIPTIONS[table_format]}: choose another catalog"
            " for this"
        )
    if traits.is_sourced or traits.shows_directory:
        refuse_create(request_view)


def refuse_create(request_view: RequestView) -> None:
    """Refuse to create an object in a catalog whose objects come from a directory or an external system.

    Raises UnsupportedOperation in that case.
    """
    traits = request_view.traits
    if traits.is_federated:
        raise _external_catalog_error(request_view)
    if traits.is_sourced:
        raise UnsupportedOperation(
            f"Catalog {request_view.catalog.name} connects to another system, whose schemas and tables are served"
            " over Gravitino REST: choose another catalog for this"
        )
    if traits.shows_directory:
        raise UnsupportedOperation(
            f"Catalog {request_view.catalog.name} is a directory, which this server only reads: choose another catalog"
            " for this"
        )


def refuse_directory_request(request_view: RequestView, action: Action) -> None:
    """Refuse requests that are not served for a directory catalog.

    Raises UnsupportedOperation for a directory catalog, or PermissionDenied if the caller may not perform `action`.
    """
    traits = request_view.settled.traits
    if traits is None or not traits.shows_directory:
        return
    request_view.require(action, request_view.settled.outer)
    raise UnsupportedOperation(
        f"Catalog {request_view.catalog.name} is a directory, whose tables can only be listed, described and read over"
        " Lance REST: change them at their location, or import them into another catalog"
    )


def other_format_error(path: Levels, result: str) -> NotFound:
    """Return the NotFound error for a table whose format this protocol does not serve."""
    text = _FORMAT_ADVICE.get(result, f"a table of format {result}")
    return NotFound(f"Table does not exist: {render(path)}. There is {text}", kind="table")


def is_root_schema_name(request_view: RequestView, levels: Levels) -> bool:
    """Return whether a schema's name is that of the virtual root schema, which represents the catalog unless a
    namespace has this name.
    """
    return levels == (request_view.defaults.root_schema,) and least_levels(request_view) == 1


def is_root_schema(request_view: RequestView, levels: Levels) -> bool:
    """Return whether a schema's name represents the catalog: it is that of the virtual root schema, and no namespace
    has it.
    """
    if not is_root_schema_name(request_view, levels):
        return False
    node, _ = request_view.find(levels, Kind.NAMESPACE)
    return node is None or node.kind is not Kind.NAMESPACE


def levels_within(request_view: RequestView, levels: Levels) -> Levels:
    """Return the levels of a schema's name; empty for the virtual root schema, which represents the catalog."""
    return () if is_root_schema(request_view, levels) else levels


def is_root_visible(request_view: RequestView) -> bool:
    """Return whether the virtual root schema is visible to the caller.

    It is visible to callers who may list the tables directly in the catalog.
    """
    name = (request_view.defaults.root_schema,)
    return (
        is_root_schema(request_view, name)
        and request_view.decide(Action.TABLE_LIST, request_view.settled.outer).allowed
    )


def root_load(request_view: RequestView) -> Node:
    """Return the catalog that the virtual root schema represents, for a caller who may list the tables directly in it.

    Raises PermissionDenied otherwise.
    """
    request_view.require(Action.TABLE_LIST, request_view.settled.outer)
    return request_view.catalog


def root_schema_advice(request_view: RequestView) -> str:
    """Return the error message for a request that treats the virtual root schema as an object, with the name to use
    instead.
    """
    catalog, name = request_view.catalog.name, request_view.defaults.root_schema
    return (
        f"Schema {catalog}.{name} represents the catalog {catalog} itself and is not an object: name the catalog"
        f" {catalog}, or a table as {catalog}.{name}.TABLE"
    )


def require_own(request_view: RequestView, levels: Levels) -> None:
    """Refuse to change the virtual root schema.

    Raises UnsupportedOperation for that schema, or PermissionDenied if it is not visible to the caller.
    """
    if is_root_schema(request_view, levels):
        request_view.require(Action.TABLE_LIST, request_view.settled.outer)
        raise UnsupportedOperation(root_schema_advice(request_view))
