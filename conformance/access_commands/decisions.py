# SPDX-License-Identifier: Apache-2.0
"""The server's decisions: each action on each object for each user, from the user's own requests.

The server refuses a disabled user everything, whereas the commands list what the user could do again. So these users
are enabled while the decisions are read.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from conformance.access_commands.lakes import LAKE, OWN_LAKE
from limnos.access.levels import actions_on, levels_in
from limnos.model.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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

    @contextmanager
    def all_enabled(self) -> Iterator[None]:
        """Enable the disabled users in the body of the `with`."""
        self._enable(True)
        try:
            yield
        finally:
            self._enable(False)

    def _enable(self, enabled: bool) -> None:
        for user in sorted(self.lake.disabled):
            self.lake.node.done("PATCH", f"{OWN_LAKE}/users/{quote(user)}", {"enabled": enabled})

    def refused(self, user: str, on: LakeObject) -> bool:
        """Return whether every action of a disabled user on an object is refused."""
        for action in actions_on(on.kind):
            body = {"action": action.word, "path": on.path, "kind": on.kind.word, "user": user}
            if self.lake.node.done("POST", f"{OWN_LAKE}/access/explain", body)["decision"]["allowed"]:
                return False
        return True

    def actions(self, user: str, on: LakeObject, among: Iterable[Action] | None = None) -> frozenset[Action]:
        """Return the actions that a user may take on an object."""
        candidates = tuple(actions_on(on.kind) if among is None else among)
        self.count += len(candidates)
        return self.lake.node.runner.run(self._allowed(user, candidates, on))

    async def _allowed(self, user: str, candidates: tuple[Action, ...], on: LakeObject) -> frozenset[Action]:
        allowed = set()
        for action in candidates:
            body = {"action": action.word, "path": on.path, "kind": on.kind.word}
            answer = await self.lake.node.answer("POST", f"{OWN_LAKE}/access/explain", body, user=user)
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
