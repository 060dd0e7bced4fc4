# SPDX-License-Identifier: Apache-2.0
"""Rows of the system table `effective_access`: the access levels of users on objects of one snapshot.

Must not know wire formats. Users with the same roles and groups, who own nothing and are named by no restriction, share
all decisions. A caller sees the levels of other users on objects whose grants the caller manages, or may grant on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from json import dumps
from typing import Final, NamedTuple

from limnos.access.actions import Action
from limnos.formats.system_tables import Cells, RowRequest
from limnos.model.errors import BadRequest
from limnos.model.principals import HeldRole, MergedRules, RoleRules, Subject
from limnos.model.privileges import Privilege
from limnos.names import display
from limnos.rooms.exchange.services.part_reads import IdRange
from limnos.rooms.exchange.services.table_access import LevelReader, SnapshotObject, TableAccess
from limnos.rooms.exchange.services.table_rows import Pages, TableRows
from limnos.store.exchange import system_tables as statements
from limnos.store.sql import Row, Sql

USERS_MAX: Final = 10_000
"""The maximum number of users in one read."""
CELLS_AT_ONCE: Final = 20_000
"""The number of pairs of an object and a user after which a step ends that decides on them."""
ROWS_AT_ONCE: Final = 5_000
"""The number of rows after which a step ends: their encoding keeps other requests from running."""
CELLS_KEPT: Final = 200_000
"""The maximum number of rows that are kept for further objects with the same facts."""
_PRIVILEGES: Final = {int(privilege): privilege for privilege in Privilege}


class _User(NamedTuple):
    id: int
    name: str
    is_enabled: bool
    group: int
    """The index of the subject that decides for this user."""


@dataclass(slots=True)
class _ObjectPage:
    """Objects whose rows are built step by step, and the number of objects that have theirs."""

    targets: Sequence[SnapshotObject]
    done: int = 0


class AccessRows:
    """The rows of one request: the levels of users on the objects of a part.

    Objects of one kind and owner in the same container, on which nothing is granted or restricted by itself, have the
    same levels. They are decided once, so that the cost is that of the rows and not of all pairs of object and user.
    """

    def __init__(self, access: TableAccess, request: RowRequest, *, part: IdRange, admins: frozenset[str]) -> None:
        self._access, self._request, self._held = access, request, access.snapshot
        self._rows = TableRows(access, request, part=part)
        self._admins = admins
        self._users: list[_User] = []
        self._subjects: list[Subject] = []
        self._levels_by_group: list[LevelReader] = []
        self._generation = 0
        self._ids_with_rules: frozenset[int] = frozenset()
        """The objects that a grant, a denial or a restriction names."""
        self._known: dict[object, list[Cells]] = {}
        """The ends of rows, from the user on, by the facts of their objects."""
        self._cells_known = 0

    async def pages(self) -> Pages:
        """Yield the pages. Raises BadRequest for more than `USERS_MAX` users."""
        await self._read_users()
        async for nodes in self._rows.node_pages():
            page = _ObjectPage([each.target for each in nodes])
            while page.done < len(page.targets):  # each call of the yielded function advances it
                yield partial(self._levels, page)

    async def _read_users(self) -> None:
        metalake = self._held.metalake_id
        names = self._request.equal_to("user_name")
        if names is None:
            rows = await self._held.rows((statements.USERS, {"metalake": metalake, "limit": USERS_MAX + 1}))
            if len(rows) > USERS_MAX:
                raise BadRequest(
                    f"The metalake has more than {USERS_MAX} users: add a condition on the column user_name"
                )
        else:
            rows = []
            for name in sorted(map(str, names)):
                rows += await self._held.rows((statements.USERS_NAMED, {"metalake": metalake, "name": name}))
        groups = await self._pairs(statements.GROUPS_OF, {row[0] for row in rows})
        group_ids = {group_id for some in groups.values() for group_id, _ in some}
        role_pairs = await self._pairs(statements.ROLES_OF, {row[0] for row in rows} | group_ids)
        rules = await self._role_rules({each for some in role_pairs.values() for each in some})
        alone = await self._principals_with_own_facts()
        indexes: dict[object, int] = {}
        merged_rules: dict[frozenset[int], MergedRules] = {}
        for user_id, name, enabled in rows:
            own_groups = groups.get(user_id, [])
            roles = [HeldRole(rules[role], None) for role in role_pairs.get(user_id, [])]
            roles += [
                HeldRole(rules[role], group) for group_id, group in own_groups for role in role_pairs.get(group_id, [])
            ]
            role_ids = frozenset(role.rules.id for role in roles)
            is_alone = user_id in alone
            key = (role_ids, tuple(own_groups), name in self._admins, user_id if is_alone else 0)
            if key not in indexes:
                if role_ids not in merged_rules:
                    merged_rules[role_ids] = MergedRules.of(roles)
                indexes[key] = len(self._subjects)
                self._subjects.append(
                    Subject(
                        user_id=user_id,
                        user_name=name,
                        groups=frozenset(group_id for group_id, _ in own_groups),
                        group_names=tuple(group for _, group in own_groups),
                        roles=tuple(roles),
                        service_admin=name in self._admins,
                        member=True,
                        merged=merged_rules[role_ids],
                    )
                )
            self._users.append(_User(user_id, name, bool(enabled), indexes[key]))
        ids_by_rule = (ids for each in self._subjects for ids in (*each.allow_ids.values(), *each.deny_ids.values()))
        self._ids_with_rules = frozenset(self._access.catalogs.restrictions).union(*ids_by_rule)

    async def _pairs(self, statement: Sql, ids: Iterable[int]) -> dict[int, list[tuple[int, str]]]:
        pairs: dict[int, list[tuple[int, str]]] = {}
        for first, second, name in await self._held.rows((statement, {"ids": dumps(sorted(ids))})):
            pairs.setdefault(first, []).append((second, name))
        return pairs

    async def _role_rules(self, roles: Iterable[tuple[int, str]]) -> dict[tuple[int, str], RoleRules]:
        roles = sorted(set(roles))
        pairs: dict[tuple[int, bool], list[tuple[Privilege, int]]] = {}
        ids = dumps([role_id for role_id, _ in roles])
        for role_id, privilege, object_id, is_allowed in await self._held.rows((statements.GRANTS_OF, {"ids": ids})):
            pairs.setdefault((role_id, bool(is_allowed)), []).append((_PRIVILEGES[privilege], object_id))
        return {
            role: RoleRules.of(
                role[0], role[1], allow=pairs.get((role[0], True), ()), deny=pairs.get((role[0], False), ())
            )
            for role in roles
        }

    async def _principals_with_own_facts(self) -> frozenset[int]:
        """Return the ids of principals about whom facts exist beside their roles and groups."""
        owning: list[Row] = await self._held.rows((statements.OWNING, {"metalake": self._held.metalake_id}))
        principal_ids = {
            each
            for restrictions in self._access.catalogs.restrictions.values()
            for restriction in restrictions
            for each in (*restriction.terms.to, *restriction.terms.unless)
        }
        return frozenset(row[0] for row in owning) | principal_ids

    def _levels(self, page: _ObjectPage) -> list[Cells]:
        """Return the rows of the next objects of a page: of one at least."""
        access = self._access
        if self._generation != access.generation:
            self._generation = access.generation
            self._levels_by_group = [access.levels_reader(subject) for subject in self._subjects]
            self._forget()
        results: list[Cells] = []
        decided_cells = 0
        while page.done < len(page.targets) and len(results) < ROWS_AT_ONCE and decided_cells < CELLS_AT_ONCE:
            target = page.targets[page.done]
            page.done += 1
            if not access.is_visible(target):
                continue
            sees_others = self._may_see_others(target)
            key = self._facts_of(target, sees_others=sees_others)
            ends = self._known.get(key)
            if ends is None:
                ends = self._decide(target, sees_others=sees_others)
                self._keep(key, ends)
                decided_cells += len(self._users)
            if ends:
                link = target.chain[0]
                start = (link.id, link.kind.word, display.render(target.path))
                results += [(*start, *end) for end in ends]
        return results

    def _facts_of(self, target: SnapshotObject, *, sees_others: bool) -> object:
        """Return a key that is equal for objects of the snapshot on which all users have the same levels."""
        chain = target.chain
        link = chain[0]
        own_id = link.id if link.id in self._ids_with_rules else 0
        return (chain[1].id if len(chain) > 1 else 0, link.kind, target.owner_id, own_id, sees_others)

    def _keep(self, key: object, ends: list[Cells]) -> None:
        if self._cells_known > CELLS_KEPT:
            self._forget()
        self._known[key] = ends
        self._cells_known += 1 + len(ends)

    def _forget(self) -> None:
        self._known, self._cells_known = {}, 0

    def _decide(self, target: SnapshotObject, *, sees_others: bool) -> list[Cells]:
        """Return the ends of the rows of an object: of each user with access, or of the caller alone."""
        own_name = self._access.caller.subject.user_name
        users = self._users if sees_others else [user for user in self._users if user.name == own_name]
        owners = self._access.owners
        object_id = target.chain[0].id
        is_new = object_id not in owners
        if is_new and target.owner_id is not None:
            owners[object_id] = target.owner_id
        levels_by_id: dict[int, tuple[tuple[str, ...], bool]] = {}
        results: list[Cells] = []
        for user in users:
            levels = levels_by_id.get(user.group)
            if levels is None:
                levels = levels_by_id[user.group] = self._levels_by_group[user.group](target)
            if levels[0]:
                results.append((user.name, user.is_enabled, levels[0], levels[1]))
        if is_new:
            owners.pop(object_id, None)
        return results

    def _may_see_others(self, target: SnapshotObject) -> bool:
        """Return whether the caller may list the users with access to an object."""
        kind, may = target.chain[0].kind, self._access.may
        return (kind in Action.EXPLAIN_OTHERS.kinds and may(Action.EXPLAIN_OTHERS, target)) or (
            kind in Action.PRIVILEGE_GRANT.kinds and may(Action.PRIVILEGE_GRANT, target)
        )
