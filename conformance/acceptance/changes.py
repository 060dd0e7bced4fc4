# SPDX-License-Identifier: Apache-2.0
"""The rows of the matrix: changes, and the required answers of the next request.

Each row prepares a caller and an object, makes a change at one node, and has the right answers. May import this
package's `protocols` and `world`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from conformance.acceptance.protocols import ALLOWED, AWAY, GRAVITINO, MISSING, OWN, REFUSED

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.acceptance.protocols import Face
    from conformance.acceptance.world import World

OK = 200


class Home:
    """A schema with an object `t`, a user, a role and a group for one cell."""

    def __init__(self, world: World, face: Face) -> None:
        self.world, self.face = world, face
        number = world.serial()
        self.space, self.user, self.role, self.group = (f"{word}{number}" for word in ("s", "u", "r", "g"))
        self.asked = "t"
        self.complaint: str | None = None
        world.do("POST", f"{GRAVITINO}/users", {"name": self.user})
        world.do("POST", f"{GRAVITINO}/groups", {"name": self.group})
        self.make_role(f"{self.role}_base", to=self.user)
        self.make_role(self.role)
        face.make_space(world, self.space)
        face.make(world, self.space, "t")
        self._privileges(f"{self.role}_base", "catalog", face.catalog, "use_catalog")
        self._privileges(f"{self.role}_base", "schema", face.full_name(self.space), "use_schema")

    def make_role(self, name: str, *, to: str | None = None) -> None:
        """Create a role, and grant it to a user."""
        self.world.do("POST", f"{GRAVITINO}/roles", {"name": name, "properties": {}, "securableObjects": []})
        if to is not None:
            self.world.do("PUT", f"{GRAVITINO}/permissions/users/{to}/grant", {"roleNames": [name]})

    def _privileges(self, role: str, kind: str, full_name: str, privilege: str, *, verb: str = "grant") -> None:
        path = f"{GRAVITINO}/permissions/roles/{role}/{kind}/{full_name}/{verb}"
        self.world.do("PUT", path, {"privileges": [{"name": privilege, "condition": "allow"}]})

    def right(self, verb: str = "grant") -> None:
        """Grant the role the right to read the object, or revoke it."""
        self._privileges(self.role, self.face.kind, self._object, self.face.privilege, verb=verb)

    def right_on_all(self) -> None:
        """Grant the role the right to read everything in the schema."""
        self._privileges(self.role, "schema", self.face.full_name(self.space), self.face.privilege)

    @property
    def _object(self) -> str:
        return self.face.full_name(self.space, "t")

    def give(self, verb: str = "grant", *, to: str = "users") -> None:
        """Grant the role to the user or the group, or revoke it."""
        name = self.user if to == "users" else self.group
        self.world.do("PUT", f"{GRAVITINO}/permissions/{to}/{name}/{verb}", {"roleNames": [self.role]})

    def tried_to_take(self) -> bool:
        """Revoke the role from the user; this may be refused. Returns whether it was done."""
        path = f"{GRAVITINO}/permissions/users/{self.user}/revoke"
        return self.world.tried("PUT", path, {"roleNames": [self.role]}) == OK

    def join(self) -> None:
        """Add the user to the group."""
        self.world.do("POST", f"{OWN}/metalakes/lake/groups/{self.group}/members", {"users": [self.user]})

    def leave(self) -> None:
        """Remove the user from the group."""
        self.world.do("DELETE", f"{OWN}/metalakes/lake/groups/{self.group}/members/{self.user}")

    def own(self, name: str) -> None:
        """Make a user the object's owner."""
        self.world.do("PUT", f"{GRAVITINO}/owners/{self.face.kind}/{self._object}", {"name": name, "type": "USER"})

    def enabled(self, *, is_so: bool) -> None:
        """Enable or disable the user."""
        self.world.do("PATCH", f"{OWN}/metalakes/lake/users/{self.user}", {"enabled": is_so})

    def rename(self) -> None:
        """Rename the object."""
        self.face.rename(self.world, self.space, old="t", new="z")

    def drop(self) -> None:
        """Drop the object."""
        self.face.drop(self.world, self.space, "t")

    def recreate(self) -> None:
        """Replace the object by another one."""
        self.drop()
        self.face.make(self.world, self.space, "t")

    def ask(self) -> tuple[str, int]:
        """Request the object. Returns the answer and its number of statements."""
        status, statements = self.world.ask(self.user, self.face.ask(self.space, self.asked))
        return self.face.said.get(status, str(status)), statements


def _nothing(_: Home) -> None:
    """Prepare nothing."""


def _has(home: Home) -> None:
    home.right()
    home.give()


def _has_by_group(home: Home) -> None:
    home.right()
    home.give(to="groups")
    home.join()


def _has_on_all(home: Home) -> None:
    home.right_on_all()
    home.give()


def _asks_for_new(home: Home) -> None:
    _has_on_all(home)
    home.asked = "z"


def _goes_away(home: Home) -> None:
    """Revoke a right while the node cannot read its store: the answer must be correct, or that the store is
    unavailable.
    """
    with home.world.away():
        done = home.tried_to_take()
        answer, _ = home.ask()
    if answer not in (REFUSED if done else ALLOWED, AWAY):
        home.complaint = f"{answer} while the store was away, by what was remembered"
    if not done:
        home.give("revoke")


class Change(NamedTuple):
    """A row: its title, its preparation, and the answers before and after the change."""

    title: str
    prepare: Callable[[Home], None]
    does: Callable[[Home], None]
    before: str
    after: str


CHANGES = (
    Change(
        title="a role is taken from a user",
        prepare=_has,
        does=lambda home: home.give("revoke"),
        before=ALLOWED,
        after=REFUSED,
    ),
    Change(title="a role is given to a user", prepare=Home.right, does=Home.give, before=REFUSED, after=ALLOWED),
    Change(
        title="a privilege is taken from a role",
        prepare=_has,
        does=lambda home: home.right("revoke"),
        before=ALLOWED,
        after=REFUSED,
    ),
    Change(title="a privilege is given to a role", prepare=Home.give, does=Home.right, before=REFUSED, after=ALLOWED),
    Change(
        title="a role is taken from a group",
        prepare=_has_by_group,
        does=lambda home: home.give("revoke", to="groups"),
        before=ALLOWED,
        after=REFUSED,
    ),
    Change(
        title="a role is given to a group",
        prepare=lambda home: (home.right(), home.join())[0],
        does=lambda home: home.give(to="groups"),
        before=REFUSED,
        after=ALLOWED,
    ),
    Change(title="a user leaves a group", prepare=_has_by_group, does=Home.leave, before=ALLOWED, after=REFUSED),
    Change(
        title="a user is disabled",
        prepare=_has,
        does=lambda home: home.enabled(is_so=False),
        before=ALLOWED,
        after=REFUSED,
    ),
    Change(
        title="another is made the owner",
        prepare=lambda home: home.own(home.user),
        does=lambda home: home.own("admin"),
        before=ALLOWED,
        after=REFUSED,
    ),
    Change(
        title="the user is made the owner",
        prepare=_nothing,
        does=lambda home: home.own(home.user),
        before=REFUSED,
        after=ALLOWED,
    ),
    Change(title="renamed: by the old name", prepare=_has_on_all, does=Home.rename, before=ALLOWED, after=MISSING),
    Change(title="renamed: by the new name", prepare=_asks_for_new, does=Home.rename, before=MISSING, after=ALLOWED),
    Change(title="dropped", prepare=_has_on_all, does=Home.drop, before=ALLOWED, after=MISSING),
    Change(
        title="dropped, and another of its name made", prepare=_has, does=Home.recreate, before=ALLOWED, after=REFUSED
    ),
    Change(
        title="a role is taken while the store is away", prepare=_has, does=_goes_away, before=ALLOWED, after=REFUSED
    ),
)
