# SPDX-License-Identifier: Apache-2.0
"""Read restrictions: set, remove and list them. Decision record 0093.

Must not know any wire format. A caller who may grant on a table or namespace may restrict the rows and columns that
others read. `access.restrictions` selects the restrictions that apply, and `services.iceberg.restricted_tables` builds
a restricted user's view of a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.formats.iceberg.field_ids import schema_of
from limnos.formats.iceberg.read_restrictions import bind_terms, check_action
from limnos.formats.iceberg.row_filters import filter_read
from limnos.model.decisions import display_names
from limnos.model.entities import Node
from limnos.model.errors import BadRequest
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.model.restrictions import ColumnMask, Restriction, RestrictionTerms
from limnos.model.row_filter_sql import sql_of
from limnos.names import display
from limnos.names.path import check_part
from limnos.services.federation.placeholder_nodes import MissingPlaceholder
from limnos.services.identity.users import principal_require
from limnos.services.lookup.securables import SecurableTarget, role_require, scope_for, target_require
from limnos.services.request.context import Context
from limnos.services.request.name_codecs import codec_of
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import ICEBERG, LANCE, format_of, require_format
from limnos.store.tx import Tx
from limnos.view.cache_miss import require_fact
from limnos.view.keys import principal_id_key, restrictions_key, rules_key

FILTER_TEXT_MAX: Final = 4_096
MASKS_MAX: Final = 500
SUMMARY_MAX: Final = 1_000
NAMED_MAX: Final = 100
"""The maximum number of users, groups and roles that one restriction may name."""


class RestrictionPrincipals(NamedTuple):
    """The names of the users, groups and roles that a restriction applies to or exempts."""

    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()


class RestrictionRequest(NamedTuple):
    """A requested restriction: a filter as SQL text or JSON, masks by column, and the principals it applies to or
    exempts.
    """

    filter: object
    masks: Mapping[str, str]
    to: RestrictionPrincipals
    unless: RestrictionPrincipals


class RestrictionTarget(NamedTuple):
    """The object that a request about restrictions names: a table or namespace, by metalake, kind and full name."""

    metalake: str
    kind: Kind
    full_name: str


class RestrictionView(NamedTuple):
    """A restriction for responses: its object, and the names of its principals."""

    restriction: Restriction
    on: tuple[Kind, str]
    to: RestrictionPrincipals
    unless: RestrictionPrincipals


class RestrictionSet(msgspec.Struct, frozen=True, kw_only=True):
    """The command to set a restriction on a table or namespace.

    `forgets` states whether it also replaces that of former objects of the path. `summary` are the terms in words.
    """

    node: Node
    name: str
    terms: RestrictionTerms
    summary: str
    forgets: bool = False


class RestrictionRemove(msgspec.Struct, frozen=True):
    """The command to remove a restriction of a table or namespace by name; with `forgets` also that of former objects
    of the path.
    """

    node: Node
    name: str
    forgets: bool = False


async def restrictions_list(ctx: Context, on: RestrictionTarget) -> list[RestrictionView]:
    """Return the restrictions that apply to a table or namespace, the nearest first, to a caller who may restrict it.
    A view, and a table of another format, have only denials that they took over.

    Raises NotFound, NotInUse, PermissionDenied, BadRequest for another kind of object.
    """

    def read(request_view: RequestView) -> list[RestrictionView]:
        target = _target(request_view, on, sets=False)
        restrictions = require_fact(
            request_view.view, restrictions_key(request_view.zone), zone=request_view.zone
        ).by_object
        links_and_names = list(zip(target.chain, display_names(target.chain), strict=True))
        return [
            _restriction_view(request_view, each, on=(link.kind, name))
            for link, name in links_and_names
            for each in restrictions.get(link.id, ())
        ]

    return await ctx.read(_scope(on), read)


async def restriction_set(ctx: Context, on: RestrictionTarget, *, name: str, request: RestrictionRequest) -> None:
    """Set a restriction, which replaces one of the same name.

    Raises NotFound (also for a principal), NotInUse, PermissionDenied, InvalidName, BadRequest for an invalid
    restriction, one that does not fit the table, or another kind of object.
    """
    check_part(name)
    # Refuse callers without the right before the filter is parsed, which is expensive.
    await ctx.read(_scope(on), lambda request_view: _target(request_view, on))
    row_filter = await _filter_of(ctx, request.filter)
    if len(request.masks) > MASKS_MAX:
        raise BadRequest(f"A restriction has at most {MASKS_MAX} masks, not {len(request.masks)}")
    masks = tuple([ColumnMask(column, check_action(action)) for column, action in request.masks.items()])
    if not row_filter and not masks:
        raise BadRequest("A restriction needs a filter, a mask or both")

    def decide(request_view: RequestView) -> Permit[RestrictionSet]:
        target = _target(request_view, on)
        node = _node_of(target)
        terms = RestrictionTerms(
            row_filter=row_filter,
            masks=masks,
            to=_ids(request_view, request.to),
            unless=_ids(request_view, request.unless),
        )
        if node.kind is Kind.TABLE:
            terms = bind_terms(terms, schema_of(request_view.document(node.id).body))
        decision = request_view.require(Action.RESTRICT, target.chain)
        command = RestrictionSet(
            node=node,
            name=name,
            terms=terms,
            summary=_summary_of(terms, request),
            forgets=_may_forget(request_view, target),
        )
        return request_view.permit(command, decision)

    await ctx.write(_scope(on), decide, restriction_put)


def _summary_of(terms: RestrictionTerms, request: RestrictionRequest) -> str:
    """Return a restriction in words, for the audit: the filter as SQL, the masks, and whom it applies to."""
    texts = [f"rows where {row_filter_text(terms.row_filter)}"] if terms.row_filter else []
    texts += [f"{each.column} masked by {each.action}" for each in terms.masks]
    texts.append(f"for {principals_text(request.to) or 'everybody'}")
    texts += [f"except {names}"] if (names := principals_text(request.unless)) else []
    return ", ".join(texts)


def row_filter_text(row_filter: str) -> str:
    """Return a row filter as SQL, at most `SUMMARY_MAX` characters of it."""
    text = sql_of(msgspec.json.decode(row_filter))
    return text if len(text) <= SUMMARY_MAX else f"{text[:SUMMARY_MAX]} …"


def principals_text(named: RestrictionPrincipals) -> str:
    """Return the names of users, groups and roles with their kinds."""
    pairs = zip(("user", "group", "role"), named, strict=True)
    return ", ".join(f"{kind} {name}" for kind, names in pairs for name in names)


async def _filter_of(ctx: Context, request: object) -> str:
    """Parse a row filter: JSON on the event loop, since its size is bounded, and SQL text as offloaded work.

    Raises BadRequest for an invalid filter.
    """
    if request is None:
        return ""
    if not isinstance(request, str):
        return msgspec.json.encode(filter_read(request)).decode()
    if len(request) > FILTER_TEXT_MAX:
        raise BadRequest(f"A filter has at most {FILTER_TEXT_MAX} characters")
    (data,) = await ctx.services.offloader.do("iceberg-filter", request.encode())
    return data.decode()


async def restriction_remove(ctx: Context, on: RestrictionTarget, *, name: str) -> bool:
    """Remove a restriction from its object. Returns whether it existed.

    Raises NotFound, NotInUse, PermissionDenied, BadRequest for another kind of object.
    """

    def decide(request_view: RequestView) -> Permit[RestrictionRemove]:
        target = _target(request_view, on, sets=False)
        decision = request_view.require(_action_of(on.kind), target.chain)
        forgets = _may_forget(request_view, target)
        return request_view.permit(RestrictionRemove(_node_of(target), name, forgets), decision)

    return await ctx.write(_scope(on), decide, restriction_delete)


def restriction_put(tx: Tx, permit: Permit[RestrictionSet]) -> None:
    """Write the restriction, if its object still exists."""
    command = permit.command
    node = tx.nodes.confirm(command.node)
    tx.restrictions.put(node, command.name, terms=command.terms, forgets=command.forgets, summary=command.summary)


def restriction_delete(tx: Tx, permit: Permit[RestrictionRemove]) -> bool:
    """Delete the restriction. Returns whether it existed; if not, the audit records that the removal failed."""
    command = permit.command
    existed = tx.restrictions.delete(tx.nodes.confirm(command.node), command.name, forgets=command.forgets)
    if not existed:
        tx.note_detail = f"there is no restriction {display.render_part(command.name)}: nothing was removed"
        tx.note_outcome = "failed"
    return existed


def _scope(on: RestrictionTarget) -> RequestScope:
    return scope_for(on.metalake, on.kind, on.full_name)


def _may_forget(request_view: RequestView, target: SecurableTarget) -> bool:
    """Return whether the caller may grant on the object's parent: the owner of a new table alone does not end the
    restrictions of former tables of its name.
    """
    return request_view.decide(Action.PRIVILEGE_GRANT, target.chain[1:]).allowed


def _action_of(kind: Kind) -> Action:
    return Action.PRIVILEGE_GRANT if kind is Kind.VIEW else Action.RESTRICT


def _target(request_view: RequestView, on: RestrictionTarget, *, sets: bool = True) -> SecurableTarget:
    """Find the object to restrict, for a caller with that right. With `sets`, a restriction is set on it.

    Raises NotFound, NotInUse, PermissionDenied, BadRequest for another kind or format, UnsupportedOperation in a
    catalog of an external system.
    """
    if on.kind not in Action.RESTRICT.kinds and (sets or on.kind is not Kind.VIEW):
        raise BadRequest(f"A restriction applies to a table, or to all tables of a namespace, not to a {on.kind.word}")
    request_view.require_in_metalake_use()
    try:
        target = target_require(request_view, on.kind, on.full_name, codec_of(request_view), _action_of(on.kind))
    except MissingPlaceholder:
        request_view.require(Action.RESTRICT, request_view.settled.outer)
        raise
    if sets and format_of(request_view) == LANCE:
        raise BadRequest(
            f"A restriction applies to Iceberg tables, and catalog {request_view.catalog.name} contains Lance tables:"
            " give its users a table of the visible rows instead"
        )
    if sets:
        require_format(request_view, ICEBERG)
    return target


def _node_of(target: SecurableTarget) -> Node:
    if target.node is None:
        raise BadRequest("Restrictions apply only to tables and namespaces")
    return target.node


def _ids(request_view: RequestView, who: RestrictionPrincipals) -> tuple[int, ...]:
    """Return the ids of a restriction's principals. Raises NotFound for an unknown name, BadRequest for too many
    names.
    """
    if sum(map(len, who)) > NAMED_MAX:
        raise BadRequest(
            f"A restriction may name at most {NAMED_MAX} users, groups and roles: name a role of these users"
        )
    results = [principal_require(request_view, Kind.USER, name).id for name in who.users]
    results += [principal_require(request_view, Kind.GROUP, name).id for name in who.groups]
    results += [role_require(request_view, name).id for name in who.roles]
    return tuple(sorted(set(results)))


def _restriction_view(request_view: RequestView, restriction: Restriction, *, on: tuple[Kind, str]) -> RestrictionView:
    return RestrictionView(
        restriction,
        on,
        _principal_names(request_view, restriction.terms.to),
        _principal_names(request_view, restriction.terms.unless),
    )


def _principal_names(request_view: RequestView, ids: Iterable[int]) -> RestrictionPrincipals:
    """Return the names of principals by id; removed ones are omitted."""
    zone, people, roles = request_view.metalake.id, [], []
    for each in ids:
        principal = require_fact(request_view.view, principal_id_key(each), zone=zone)
        if principal is not None:
            people.append(principal)
            continue
        fact = require_fact(request_view.view, rules_key(each), zone=zone)
        if fact is not None:
            roles.append(fact[0].name)
    users, groups = ([each.name for each in people if each.kind is kind] for kind in (Kind.USER, Kind.GROUP))
    return RestrictionPrincipals(tuple(users), tuple(groups), tuple(roles))
