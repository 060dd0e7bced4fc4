# SPDX-License-Identifier: Apache-2.0
"""Securables: finds securable objects by kind and full name, for grants, owners and attachments.

A full name may have several interpretations, since names may contain dots; the one whose object exists is chosen.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from limnos.access.actions import Action
from limnos.model.decisions import ChainLink, Decision, SecurableChain
from limnos.model.entities import Node, RoleEntity
from limnos.model.errors import BadRequest, NotFound, UnsupportedOperation
from limnos.model.kind_table import row_of
from limnos.model.kinds import NAMESPACE_OBJECTS, SECURABLES, Kind, KindGroup, ZoneKind
from limnos.model.records import NODE_RECORDS
from limnos.names import fullname
from limnos.names.fullname import FullName
from limnos.names.logical import LogicalCodec
from limnos.services.federation.placeholder_nodes import MissingPlaceholder, may_have_placeholders
from limnos.services.request.authorized_object import AuthorizedObject
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import (
    is_root_schema,
    is_root_schema_name,
    least_levels,
    root_schema_advice,
)
from limnos.view.cache_miss import require_fact
from limnos.view.keys import role_key

_WORDS = {word: kind for kind in SECURABLES for word in (kind.word, row_of(kind).gravitino or kind.word)}


class SecurableTarget(NamedTuple):
    """An existing securable object.

    `node` is None for a role; `parent` is the object's container; `catalog_type` is the type of its catalog.
    """

    id: int
    kind: Kind
    chain: SecurableChain
    node: Node | None
    parent: Node | None
    catalog_type: str | None


def parse_kind(text: str) -> Kind:
    """Parse a securable object's type, in any case; `schema` is Gravitino's word for a namespace.

    Raises BadRequest for an unknown type.
    """
    kind = _WORDS.get(text.lower())
    if kind is None:
        raise BadRequest(f"Unknown object type {text}: use one of {', '.join(sorted(_WORDS))}")
    return kind


def scope_for(metalake: str, kind: Kind, full_name: str) -> RequestScope:
    """Return the request scope of an object from its full name: its catalog, or the metalake."""
    if kind is Kind.CATALOG or kind.home is ZoneKind.CATALOG:
        return RequestScope(metalake, fullname.catalog_of(full_name))
    return RequestScope(metalake)


def securable_missing_error(request_view: RequestView, kind: Kind, *, full_name: str) -> NotFound:
    """Return the error for a missing securable object, with the message that `target_find` uses."""
    if kind is Kind.CATALOG:
        return NotFound(f"Catalog {full_name} does not exist in metalake {request_view.metalake.name}", kind="catalog")
    if kind is Kind.ROLE or kind.form is KindGroup.APART:
        return request_view.missing(kind, (full_name,))
    return NotFound(f"{kind.word.capitalize()} {full_name} does not exist", kind="object")


def target_find(request_view: RequestView, kind: Kind, full_name: str, codec: LogicalCodec) -> SecurableTarget:
    """Find a securable object by its kind and full name.

    Raises NotFound if it does not exist, InvalidName for an ambiguous name, UnsupportedOperation for a schema that only
    represents a catalog, BadRequest for other kinds.
    """
    if kind is Kind.METALAKE:
        if full_name != request_view.metalake.name:
            raise NotFound(f"Metalake {full_name} is not the metalake of this request", kind="object")
        return SecurableTarget(
            id=request_view.metalake.id,
            kind=kind,
            chain=request_view.settled.outer,
            node=request_view.metalake,
            parent=None,
            catalog_type=None,
        )
    if kind is Kind.ROLE:
        role = role_require(request_view, full_name)
        return SecurableTarget(
            id=role.id,
            kind=kind,
            chain=(ChainLink(role.id, kind, role.name), *request_view.settled.outer),
            node=None,
            parent=None,
            catalog_type=None,
        )
    if kind.form is KindGroup.APART and kind in NODE_RECORDS:
        node, chain = request_view.find_outside(kind, (full_name,))
        if node is None:
            raise request_view.missing(kind, (full_name,))
        return SecurableTarget(
            id=node.id, kind=kind, chain=chain, node=node, parent=request_view.metalake, catalog_type=None
        )
    if kind is Kind.CATALOG:
        # refuses names with further parts after the catalog
        next(fullname.candidates(full_name, fullname.CATALOG, codec=codec))
        if request_view.settled.catalog is None:
            raise securable_missing_error(request_view, kind, full_name=full_name)
        catalog_type = request_view.catalog_record.type
        return SecurableTarget(
            id=request_view.catalog.id,
            kind=kind,
            chain=request_view.settled.outer,
            node=request_view.catalog,
            parent=request_view.metalake,
            catalog_type=catalog_type,
        )
    if kind is Kind.NAMESPACE or kind in NAMESPACE_OBJECTS:
        return _in_catalog(request_view, kind, full_name, codec)
    if kind is Kind.COLUMN:
        raise BadRequest("A column has only tags, policies and statistics: for everything else name its table")
    raise BadRequest(f"Objects of type {kind.word} are not supported yet")


def target_require(
    request_view: RequestView, kind: Kind, full_name: str, codec: LogicalCodec, *actions: Action
) -> SecurableTarget:
    """Find a securable object for a caller who may perform any of the actions on it; the message of a refusal names the
    last action.

    A missing object is refused with the same message as an existing one. Raises PermissionDenied without the right,
    else NotFound or UnsupportedOperation as `target_find` does.
    """
    try:
        target = target_find(request_view, kind, full_name, codec)
    except (NotFound, UnsupportedOperation) as error:
        if kind is not Kind.METALAKE:
            _require_any(request_view, _absent_chain(request_view, kind, full_name, codec), actions)
        if isinstance(error, MissingPlaceholder):
            error.allowed = lambda request_view, chain: _require_any(request_view, chain, actions)
        raise
    _require_any(request_view, target.chain, actions)
    return target


def _require_any(request_view: RequestView, chain: SecurableChain, actions: tuple[Action, ...]) -> Decision:
    for action in actions[:-1]:
        decision = request_view.decide(action, chain)
        if decision.allowed:
            return decision
    return request_view.require(actions[-1], chain)


def _absent_chain(request_view: RequestView, kind: Kind, full_name: str, codec: LogicalCodec) -> SecurableChain:
    """Return a missing object with its ancestors, from the nearest existing container by the first interpretation of
    its full name.
    """
    if kind.form is KindGroup.APART:
        return (ChainLink.absent(kind, full_name), *request_view.settled.outer[-1:])
    if kind is Kind.CATALOG:
        return request_view.settled.outer
    parts = fullname.SCHEMA if kind is Kind.NAMESPACE else fullname.OBJECT
    at_root = _may_be_at_root(request_view, kind)
    levels = _levels(next(iter(fullname.candidates(full_name, parts, codec=codec, at_root=at_root))))
    return (ChainLink.absent(kind, levels[-1]), *request_view.find(levels, kind)[1])


def _in_catalog(request_view: RequestView, kind: Kind, full_name: str, codec: LogicalCodec) -> SecurableTarget:
    def exists(reading: FullName) -> bool:
        return _find_reading(request_view, reading, kind=kind)[0] is not None

    parts = fullname.SCHEMA if kind is Kind.NAMESPACE else fullname.OBJECT
    at_root = _may_be_at_root(request_view, kind)
    reading = fullname.resolve(full_name, exists, kind_levels=parts, codec=codec, at_root=at_root)
    if reading is None:
        if kind is Kind.NAMESPACE and any(
            is_root_schema(request_view, each.levels) for each in fullname.candidates(full_name, parts, codec=codec)
        ):
            raise UnsupportedOperation(root_schema_advice(request_view))
        missing = f"{kind.word.capitalize()} {full_name} does not exist"
        if may_have_placeholders(request_view, kind):
            readings = tuple(
                _levels(each) for each in fullname.candidates(full_name, parts, codec=codec, at_root=at_root)
            )
            raise MissingPlaceholder(missing, scope=request_view.scope, object_kind=kind, readings=readings)
        raise NotFound(missing, kind="object")
    node, chain = _find_reading(request_view, reading, kind=kind)
    if node is None or node.kind is not kind:
        missing = f"{kind.word.capitalize()} {full_name} does not exist"
        if may_have_placeholders(request_view, kind):  # the object with that name has another kind
            raise MissingPlaceholder(missing, scope=request_view.scope, object_kind=kind, readings=(_levels(reading),))
        raise NotFound(missing, kind="object")
    parent = request_view.catalog if node.parent_id == request_view.catalog.id else request_view.node(node.parent_id)
    return SecurableTarget(
        id=node.id, kind=kind, chain=chain, node=node, parent=parent, catalog_type=request_view.catalog_record.type
    )


def _may_be_at_root(request_view: RequestView, kind: Kind) -> bool:
    """Return whether objects of a kind may lie directly in the catalog: tables of a Lance catalog."""
    return kind is Kind.TABLE and least_levels(request_view) == 1


def _find_reading(request_view: RequestView, reading: FullName, *, kind: Kind) -> tuple[Node | None, SecurableChain]:
    """Find the object for one interpretation of a full name.

    The virtual root schema of a Lance catalog contains the objects directly in the catalog.
    """
    node, chain = request_view.find(_levels(reading), kind)
    if node is not None or not reading.name or not is_root_schema_name(request_view, reading.levels):
        return node, chain
    return request_view.find((reading.name,), kind)


def _levels(reading: FullName) -> tuple[str, ...]:
    return reading.levels if reading.name is None else (*reading.levels, reading.name)


def role_find(request_view: RequestView, name: str) -> RoleEntity | None:
    """Return a role by name; None if it does not exist."""
    return require_fact(request_view.view, role_key(request_view.metalake.id, name), zone=request_view.metalake.id)


def role_require(request_view: RequestView, name: str) -> RoleEntity:
    """Return a role by name. Raises NotFound if it does not exist."""
    entity = role_find(request_view, name)
    if entity is None:
        raise request_view.missing(Kind.ROLE, (name,))
    return entity


def role_look_up(request_view: RequestView, name: str, action: Action) -> AuthorizedObject[RoleEntity]:
    """Find a role for a caller who may perform the action on it.

    Raises NotFound if it does not exist, NotInUse if the metalake is disabled, PermissionDenied without the right.
    """
    request_view.require_in_use()
    return request_view.judge(role_find(request_view, name), Kind.ROLE, name, action)


def render_full_name(kind: Kind, path: tuple[str, ...], *, codec: LogicalCodec) -> str:
    """Return an object's full name in unambiguous form: names with dots are in back-quotes.

    `path` begins with the catalog, or is the name of an object outside of catalogs.
    """
    head, *rest = path
    if kind is Kind.METALAKE or kind.form is KindGroup.APART:
        return head
    column = rest.pop() if kind is Kind.COLUMN and rest else None
    leaf = None if kind in (Kind.CATALOG, Kind.NAMESPACE) or not rest else rest.pop()
    nested_codec = replace(codec, nested=len(rest) > 1)  # one level is spelled unchanged, also in a flat catalog
    return fullname.render_quoted(FullName(head, tuple(rest), leaf, column), codec=nested_codec)


class AttachmentTarget(NamedTuple):
    """The target of an attachment (of a tag or policy) as a request names it: metalake, kind and full name."""

    metalake: str
    kind: Kind
    full_name: str

    @property
    def scope(self) -> RequestScope:
        """The request scope of the target: its catalog, or the metalake."""
        return scope_for(self.metalake, self.kind, self.full_name)
