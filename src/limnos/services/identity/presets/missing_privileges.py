# SPDX-License-Identifier: Apache-2.0
"""Privileges of a preset that a user lacks on an object, the denials that take them away, and the restrictions.

Owners lack nothing that the policy gives to owners: of a metalake or catalog nothing at all, of a namespace at most
USE_CATALOG.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from limnos.access.actions import Action
from limnos.access.restrictions import find_inherited_denial
from limnos.access.rules import DecisionCase, NotDeniedRule, OwnerRule, PrivilegeRule, Rule, UseSchemaRule
from limnos.model.decisions import DecisionFactor
from limnos.model.errors import BadRequest
from limnos.model.kinds import NAMESPACE_OBJECTS, Kind
from limnos.model.presets import WAY, PresetName, preset_privileges
from limnos.model.privileges import Privilege
from limnos.services.identity.access_objects import (
    AccessQuestion,
    may_know,
    scope_of_question,
    target_of,
)
from limnos.services.identity.explain import is_disabled, require_present
from limnos.services.identity.users import principal_require
from limnos.services.request.context import Context
from limnos.services.request.request_view import RequestView

_OUTER: Final = OwnerRule(frozenset({Kind.METALAKE, Kind.CATALOG}))
_NAMESPACE: Final = OwnerRule(frozenset({Kind.NAMESPACE}))
_LEAF: Final = OwnerRule(frozenset(NAMESPACE_OBJECTS))
_WAY_RULES: Final[tuple[tuple[Privilege, Kind, Rule], ...]] = (
    (Privilege.USE_CATALOG, Kind.CATALOG, PrivilegeRule(Privilege.USE_CATALOG)),
    (Privilege.USE_SCHEMA, Kind.NAMESPACE, UseSchemaRule()),
)


class MissingPrivilege(NamedTuple):
    """A privilege that a user lacks, the object on which the preset grants it, and the denials that override grants."""

    privilege: Privilege
    kind: Kind
    object_name: str
    denials: tuple[DecisionFactor, ...]


class MissingPrivileges(NamedTuple):
    """What a user lacks for a preset on an object. `restrictions` are the read restrictions that apply to the user, and
    every request of a user who is not enabled is refused.

    `taken_over` has, by denial, the name of the restriction that has it if the object took it over from a former object
    of its path.
    """

    user: str
    kind: Kind
    missing: tuple[MissingPrivilege, ...]
    restrictions: tuple[str, ...]
    is_enforced: bool
    is_enabled: bool
    taken_over: Mapping[DecisionFactor, str] = MappingProxyType({})


async def missing_privileges(
    ctx: Context, question: AccessQuestion, *, user: str | None, preset: PresetName
) -> MissingPrivileges:
    """Return the privileges that a user, by default the caller, lacks for a preset on an object.

    A missing object counts as one without grants of its own for a caller who may not know that it is missing.

    Raises:
        PermissionDenied: The request is about another user, and the caller does not manage grants there.
        NotFound: The metalake has no such user, or the object does not exist and the caller may know that.
        BadRequest: The kind of object has no privileges of the preset.
    """

    def read(request_view: RequestView) -> MissingPrivileges:
        target = target_of(request_view, question)
        name = user or request_view.user
        if name != request_view.user:
            request_view.require(Action.EXPLAIN_OTHERS, target.chain)
            principal_require(request_view, Kind.USER, name)
        kind = target.chain[0].kind
        privileges = preset_privileges(preset, kind, catalog_type=_catalog_type(request_view))
        if not set(privileges) - WAY:
            raise BadRequest(f"A {kind.word.replace('_', ' ')} has no privileges of the preset {preset}")
        require_present(request_view, target.chain, actions=(Action.EXPLAIN_OTHERS, Action.PRIVILEGE_GRANT))
        case = DecisionCase(request_view.subject_of(name), target.chain, request_view.owner_of)
        binding = request_view.bindings_of(name, target.chain) if may_know(request_view, target.chain) else ()
        restrictions = {each.restriction.name for each in binding}
        missing = tuple(_missing(case, privileges)) if target.is_enforced else ()
        return MissingPrivileges(
            user=name,
            kind=kind,
            missing=missing,
            restrictions=tuple(sorted(restrictions)),
            is_enforced=target.is_enforced,
            is_enabled=not is_disabled(request_view, name),
            taken_over={
                denial: restriction_name
                for each in missing
                for denial in each.denials
                if (restriction_name := find_inherited_denial(denial, target.restrictions)) is not None
            },
        )

    return await ctx.read(await scope_of_question(ctx, question), read)


def _catalog_type(request_view: RequestView) -> str | None:
    """Return the type of the object's catalog; None outside of catalogs, and for a caller who may not know the
    catalog.
    """
    if request_view.settled.catalog is None or not may_know(request_view, request_view.settled.outer):
        return None
    return request_view.catalog_record.type


def _missing(case: DecisionCase, privileges: tuple[Privilege, ...]) -> Iterator[MissingPrivilege]:
    """Yield the missing privileges, those on containers first."""
    if _OUTER.evaluate(case) is not None:
        return
    chain = case.chain
    owned_privileges = _owned_privileges(case)
    for privilege, kind, rule in _WAY_RULES:
        levels = [at for at, link in enumerate(chain) if link.kind is kind]
        if privilege not in owned_privileges and levels and not rule.is_met(case):
            yield _missing_privilege(case, privilege, at=levels[0])
    is_at_root = [link.kind for link in chain[:2]] == [Kind.TABLE, Kind.CATALOG]
    needs_own = is_at_root and not UseSchemaRule().is_met(case)
    denied = NotDeniedRule(Privilege.USE_SCHEMA).wants(case) if needs_own else ()
    if denied:
        yield MissingPrivilege(Privilege.USE_SCHEMA, chain[1].kind, case.names[1], _factors(denied))
    for privilege in privileges:
        if privilege in owned_privileges or (
            privilege in WAY and any(link.kind in _WAY_KINDS[privilege] for link in chain)
        ):
            continue
        if needs_own or not PrivilegeRule(privilege).is_met(case):
            yield _missing_privilege(case, privilege, at=0)


_WAY_KINDS: Final = {privilege: (kind,) for privilege, kind, _ in _WAY_RULES}


def _owned_privileges(case: DecisionCase) -> frozenset[Privilege]:
    """Return the privileges that the owner of the object, or of a namespace around it, does not need."""
    if _NAMESPACE.evaluate(case) is not None:
        return frozenset(Privilege) - {Privilege.USE_CATALOG}
    if _LEAF.evaluate(case) is not None:
        return frozenset(Privilege) - WAY
    return frozenset()


def _missing_privilege(case: DecisionCase, privilege: Privilege, *, at: int) -> MissingPrivilege:
    return MissingPrivilege(
        privilege, case.chain[at].kind, case.names[at], _factors(NotDeniedRule(privilege).wants(case) or ())
    )


def _factors(clauses: tuple[tuple[DecisionFactor, ...], ...]) -> tuple[DecisionFactor, ...]:
    return tuple(factor for clause in clauses for factor in clause)
