# SPDX-License-Identifier: Apache-2.0
"""List filters: one decision at the parent of a list, then sets of exceptions for its items.

Pure. A filter includes exactly the items for which `decide` would allow the item's action (`access.policy.ITEMS`), but
evaluates the rule once per list instead of once per item.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import compress
from operator import or_
from typing import Final

from limnos.access import rules
from limnos.access.actions import Action
from limnos.access.policy import ITEMS, POLICY
from limnos.model.decisions import SecurableChain
from limnos.model.kinds import Kind
from limnos.model.principals import Subject

_NOBODY: Final[frozenset[int]] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListFilter:
    """The items of one parent that are visible to a subject.

    Unless `everything` or `nothing` is true, an item is visible in three cases: its id is in `visible_ids`, its
    owner is in `principals`, or a privilege at the parent covers all items except `hidden`. `hidden` is None without
    such a privilege.
    """

    everything: bool
    nothing: bool
    hidden: frozenset[int] | None = None
    visible_ids: frozenset[int] = _NOBODY
    principals: frozenset[int] = _NOBODY

    def positions(self, ids: Sequence[int], owners: Sequence[int | None]) -> list[int]:
        """Return the indexes of the visible items, ascending. `owners` is parallel to `ids`; None means no owner."""
        if self.everything:
            return list(range(len(ids)))
        if self.nothing:
            return []
        is_owner = not self.principals.isdisjoint(owners)
        if self.hidden is not None:
            return self._all_but(self.hidden.intersection(ids) - self.visible_ids, ids, owners if is_owner else ())
        seen: Iterable[bool] = map(self.visible_ids.__contains__, ids)
        if is_owner:
            seen = map(or_, seen, map(self.principals.__contains__, owners))
        return list(compress(range(len(ids)), seen))

    def _all_but(self, bad: frozenset[int], ids: Sequence[int], owners: Sequence[int | None]) -> list[int]:
        if not bad:
            return list(range(len(ids)))
        if not owners:
            return [i for i, item in enumerate(ids) if item not in bad]
        pairs = enumerate(zip(ids, owners, strict=True))
        return [i for i, (item, owner) in pairs if item not in bad or owner in self.principals]


EVERYTHING: Final = ListFilter(everything=True, nothing=False)
NOTHING: Final = ListFilter(everything=False, nothing=True)


def list_filter(
    subject: Subject, action: Action, chain_of_parent: SecurableChain, owner_of: rules.OwnerOf
) -> ListFilter:
    """Return the filter for a list action (`TABLE_LIST`, `CATALOG_LIST`, …) on the children of the first object of
    `chain_of_parent`.

    It only filters; whether the subject may list at all is a separate decision on the same action. `owner_of` is called
    for the parent and its ancestors, never for items, and its exceptions propagate.
    """
    if not subject.member:
        return NOTHING
    item = ITEMS[action]
    (kind,) = item.kinds
    case = rules.DecisionCase(subject, chain_of_parent, owner_of)
    rule = POLICY[item]
    return _union_of_filters(
        [_part(leaf, case, kind) for leaf in (rule.parts if isinstance(rule, rules.AnyOf) else (rule,))]
    )


def widen_filter(output: ListFilter, ids: frozenset[int]) -> ListFilter:
    """Return a filter that additionally shows the items with these ids."""
    return _union_of_filters([output, _partial_filter(visible_ids=ids)])


def _part(rule: rules.Rule, case: rules.DecisionCase, kind: Kind) -> ListFilter:
    """Return the filter for one simple condition of the rule of an item."""
    match rule:
        case rules.PrivilegeRule(privilege):
            return _privilege_filter(rule, case, case.allow_ids.get(privilege), case.deny_ids.get(privilege, _NOBODY))
        case rules.OwnerRule(kinds):
            if rule.evaluate(case) is not None:
                return EVERYTHING
            return _partial_filter(principals=case.principal_ids) if kind in kinds else NOTHING
        case rules.SelfRule():
            return _partial_filter(visible_ids=case.principal_ids)
        case rules.HoldsRoleRule():
            return _partial_filter(visible_ids=case.subject.role_ids)
        case rules.MemberRule():
            return EVERYTHING
        case _:
            raise TypeError(f"{type(rule).__name__} cannot be an item's rule: it depends on more than the item itself")


def _privilege_filter(
    rule: rules.PrivilegeRule, case: rules.DecisionCase, allow: frozenset[int] | None, deny: frozenset[int]
) -> ListFilter:
    if allow is None or any(link.id in deny for link in case.chain):
        return NOTHING
    if rule.evaluate(case) is None:
        return _partial_filter(visible_ids=allow - deny if deny else allow)
    return ListFilter(everything=False, nothing=False, hidden=deny) if deny else EVERYTHING


def _partial_filter(*, visible_ids: frozenset[int] = _NOBODY, principals: frozenset[int] = _NOBODY) -> ListFilter:
    if not visible_ids and not principals:
        return NOTHING
    return ListFilter(everything=False, nothing=False, visible_ids=visible_ids, principals=principals)


def _union_of_filters(parts: list[ListFilter]) -> ListFilter:
    """Return the union of filters: an item is visible if at least one of them includes it.

    If several filters cover all items with exceptions, only the items that all of them hide stay hidden.
    """
    live = [part for part in parts if not part.nothing]
    if not live:
        return NOTHING
    if any(part.everything for part in live):
        return EVERYTHING
    covers = [part.hidden for part in live if part.hidden is not None]
    hidden_ids = covers[0].intersection(*covers[1:]) if covers else None
    if hidden_ids is not None and not hidden_ids:
        return EVERYTHING
    return ListFilter(
        everything=False,
        nothing=False,
        hidden=hidden_ids,
        visible_ids=_union([part.visible_ids for part in live if part.visible_ids]),
        principals=_union([part.principals for part in live if part.principals]),
    )


def _union(sets: list[frozenset[int]]) -> frozenset[int]:
    return sets[0] if len(sets) == 1 else _NOBODY.union(*sets)
