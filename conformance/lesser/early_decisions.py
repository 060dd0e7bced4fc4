# SPDX-License-Identifier: Apache-2.0
"""Whether a route that makes an early decision before it reads a long body would read the bodies of more callers:
decided for every possible caller.

May import `limnos.access` and `limnos.model`.
"""

from __future__ import annotations

from itertools import combinations, product
from typing import TYPE_CHECKING, Final, cast

from limnos.access.actions import Action
from limnos.access.policy import POLICY
from limnos.access.prechecks import may_be_allowed
from limnos.access.rules import PrivilegeRule
from limnos.model.decisions import ChainLink, SecurableChain
from limnos.model.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from limnos.access.rules import Rule
    from limnos.model.principals import Subject
    from limnos.model.privileges import Privilege

_METALAKE, _CATALOG, _NAMESPACE = (
    ChainLink(1, Kind.METALAKE, "m"),
    ChainLink(2, Kind.CATALOG, "c"),
    ChainLink(3, Kind.NAMESPACE, "n"),
)
SHALLOW: Final[tuple[SecurableChain, ...]] = ((_METALAKE,), (_CATALOG, _METALAKE))
"""The ancestors that the admin API and Gravitino REST know before they read a body."""
DEEP: Final[tuple[SecurableChain, ...]] = (
    *SHALLOW,
    (_NAMESPACE, _CATALOG, _METALAKE),
    (ChainLink.absent(Kind.NAMESPACE, "n"), _CATALOG, _METALAKE),
    *(
        (link, _NAMESPACE, _CATALOG, _METALAKE)
        for kind in (Kind.TABLE, Kind.VIEW)
        for link in (ChainLink(4, kind, "t"), ChainLink.absent(kind, "t"))
    ),
)
"""The ancestors that Iceberg REST and Lance REST know."""


class _Caller:
    def __init__(self, allowed: tuple[Privilege, ...], *, member: bool, admin: bool) -> None:
        self.allow_ids, self.member, self.service_admin = frozenset(allowed), member, admin
        self.principal_ids = frozenset({1})


def admits_more(asks: Sequence[Action], lowered: Sequence[Action], chains: Sequence[SecurableChain]) -> str | None:
    """Describe a caller whose body is read only with the lowered actions; None if there is none.

    No rule refuses a caller for holding a privilege. So only sets of the privileges that the new actions name matter:
    a further privilege may allow an action of before, and changes nothing for a new one.
    """
    new = set(lowered) - set(asks)
    privileges = sorted({each for action in new for each in _privileges(POLICY[action])})
    privilege_sets = (each for count in range(len(privileges) + 1) for each in combinations(privileges, count))
    for allowed, member, admin, chain in product(privilege_sets, (False, True), (False, True), chains):
        caller = cast("Subject", _Caller(allowed, member=member, admin=admin))
        for owned in (None, *(link.id for link in chain if link.id > 0)):
            owner_of = {link.id: 1 if link.id == owned else 2 for link in chain}
            now, then = (
                any(may_be_allowed(caller, each, chain, lambda link: owner_of[link.id]) for each in some)  # noqa: B023 - called here
                for some in (new, asks)
            )
            if now and not then:
                return f"who holds {allowed or 'nothing'} and owns {owned} on {[link.kind.word for link in chain]}"
    return None


def _privileges(rule: Rule) -> Iterator[Privilege]:
    if isinstance(rule, PrivilegeRule):
        yield rule.privilege
    for part in (*getattr(rule, "parts", ()), *getattr(rule, "rules", {}).values()):
        yield from _privileges(part)
