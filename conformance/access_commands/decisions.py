# SPDX-License-Identifier: Apache-2.0
"""The server's decisions: each action on each object for each user, from the user's own requests.

A disabled user cannot send requests, so an administrator asks for the decision that the user would get.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from conformance.access_commands.lakes import LAKE, OWN_LAKE
from limnos.access.levels import actions_on, levels_in
from limnos.model.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.access_commands.lakes import LakeObject, RandomLake
    from limnos.access.actions import Action

PROBES: Final = {
    Kind.CATALOG: ("catalog_load",),
    Kind.NAMESPACE: ("namespace_load",),
    Kind.TABLE: ("table_load", "table_scan"),
}
"""Kinds that one request loads, and the actions of which one suffices. Restricted readers may only scan a table."""


class Decisions:
    """Asks a node for decisions, and counts them."""

    def __init__(self, lake: RandomLake) -> None:
        self.lake = lake
        self.count = 0

    def actions(self, user: str, on: LakeObject, among: Iterable[Action] | None = None) -> frozenset[Action]:
        """Return the actions that a user may take on an object."""
        candidates = tuple(actions_on(on.kind) if among is None else among)
        self.count += len(candidates)
        return self.lake.node.runner.run(self._allowed(user, candidates, on))

    async def _allowed(self, user: str, candidates: tuple[Action, ...], on: LakeObject) -> frozenset[Action]:
        asks, about = ("admin", user) if user in self.lake.disabled else (user, None)
        allowed = set()
        for action in candidates:
            body = {"action": action.word, "path": on.path, "kind": on.kind.word, "user": about}
            answer = await self.lake.node.answer("POST", f"{OWN_LAKE}/access/explain", body, user=asks)
            assert answer.status == 200, f"{action} {on} for {user}: {answer.status} {answer.body.decode()}"
            if answer.json()["decision"]["allowed"]:
                allowed.add(action)
        return frozenset(allowed)

    def probe(self, user: str, on: LakeObject) -> bool | None:
        """Return whether the request that loads an object is answered for a user; None if no request is known."""
        if on.kind not in PROBES or user in self.lake.disabled or on.path[0] == "off":
            return None
        catalog, *levels = on.path
        address = f"{LAKE}/catalogs/{quote(catalog)}"
        if on.kind is Kind.TABLE:
            address = f"/iceberg/v1/lake.{catalog}/namespaces/{'%1F'.join(map(quote, levels[:-1]))}/tables/{levels[-1]}"
        elif levels:
            address = f"{address}/schemas/{quote(':'.join(levels))}"
        return self.lake.node.get(address, user=user).status == 200


Table = dict[tuple[str, "LakeObject"], frozenset["Action"]]


def levels_by_user(table: Table) -> set[tuple[str, str, LakeObject]]:
    """Return each access level of each user on each object."""
    return {(user, level, on) for (user, on), actions in table.items() for level in levels_in(actions, on.kind)}
