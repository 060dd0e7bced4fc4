"""Lance roots: the schema that represents a Lance catalog itself in full names, for tables directly in the catalog.

May import `access`, `model`, `names` and the request view. A real namespace of that name takes precedence (decision
record 0043).
"""

from __future__ import annotations

from limnos.access.actions import Action
from limnos.model.entities import Node
from limnos.model.errors import UnsupportedOperation
from limnos.model.kinds import Kind
from limnos.names.path import Levels
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import least_levels


def is_root_schema_name(request_view: RequestView, levels: Levels) -> bool:
    """Return whether a schema's name represents the catalog unless a namespace has that name."""
    return levels == (request_view.defaults.root_schema,) and least_levels(request_view) == 1


def is_root_schema(request_view: RequestView, levels: Levels) -> bool:
    """Return whether a schema's name represents the catalog."""
    if not is_root_schema_name(request_view, levels):
        return False
    node, _ = request_view.find(levels, Kind.NAMESPACE)
    return node is None or node.kind is not Kind.NAMESPACE


def levels_within(request_view: RequestView, levels: Levels) -> Levels:
    """Return the levels of a schema's name: none if it represents the catalog."""
    return () if is_root_schema(request_view, levels) else levels


def is_root_visible(request_view: RequestView) -> bool:
    """Return whether the caller sees the schema that represents the catalog's root.

    Callers who may list the tables directly in the catalog see it.
    """
    name = (request_view.defaults.root_schema,)
    return (
        is_root_schema(request_view, name)
        and request_view.decide(Action.TABLE_LIST, request_view.settled.outer).allowed
    )


def root_load(request_view: RequestView) -> Node:
    """Return the catalog that the schema represents, to a caller who may list the objects directly in it.

    Raises PermissionDenied.
    """
    request_view.require(Action.TABLE_LIST, request_view.settled.outer)
    return request_view.catalog


def root_schema_advice(request_view: RequestView) -> str:
    """Return advice for a request that treats that schema as an object: which name to use instead."""
    catalog, name = request_view.catalog.name, request_view.defaults.root_schema
    return (
        f"Schema {catalog}.{name} represents the catalog {catalog} itself and is not an object: name the catalog {catalog}, "
        f"or a table as {catalog}.{name}.TABLE"
    )


def require_own(request_view: RequestView, levels: Levels) -> None:
    """Refuse to change the schema that represents the catalog's root.

    Raises UnsupportedOperation, or PermissionDenied if the caller may not see it.
    """
    if is_root_schema(request_view, levels):
        request_view.require(Action.TABLE_LIST, request_view.settled.outer)
        raise UnsupportedOperation(root_schema_advice(request_view))
