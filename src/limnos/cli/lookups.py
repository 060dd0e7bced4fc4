# SPDX-License-Identifier: Apache-2.0
"""Requests after a failure: what a refused caller may ask for and of whom, and the object to which a wrong path is
close, or what a path is.

They refuse nothing, so the audit has one record of the refusal. A request that fails, or that takes long, is no answer:
the failure is then reported without it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from limnos.model.presets import PRESET_KINDS, PresetName, helpful_preset
from limnos.names import display
from limnos.names.errors import InvalidName

if TYPE_CHECKING:
    from limnos.client import Client, ClientError
    from limnos.client.catalog.children import ChildInfo
    from limnos.client.values import Factor

TIMEOUT_S: Final = 3.0
NAMES_MAX: Final = 500
"""The number of siblings among which a close name is looked for."""
LISTED_MAX: Final = 5_000
"""The number of users, groups or roles among which a close name is looked for."""
reopen: ContextVar[Callable[[], Client] | None] = ContextVar("reopen", default=None)
"""Opens another client of the server of the failed command, as the same user; None before a command has one."""


class UsedServer(NamedTuple):
    """The server of a command, the flag or variable with the caller's credential, else the profile that has it. Either
    is None without one.
    """

    uri: str
    source: str | None
    profile: str | None

    @property
    def credential(self) -> str:
        """The credential, as a message names it."""
        return f"the token of {self.source}" if self.source else f"the session of profile {self.profile}"


used_server: ContextVar[UsedServer | None] = ContextVar("used_server", default=None)
"""The server that the command uses; None before a command has one."""
_INSTALLS_EXTRA: Final = re.compile(r"pip install '\w+\[")
"""How a server names the command that installs an extra."""
_NAMED_MAX: Final = 3
_DROPPED_MAX: Final = 100
"""The number of dropped objects below a path among which the one at the path is looked for."""
_CATALOGS_MAX: Final = 20
"""The number of catalogs in which a path without its catalog is looked for."""
_HOLDERS_MAX: Final = 1_000
"""The number of users with access to an object among whose roles one is looked for."""
_ASKED_FOR: Final = frozenset({kind.word for kind in PRESET_KINDS} - {"metalake"})
"""The kinds of objects to which access can be asked for."""


class AccessOffer(NamedTuple):
    """What a refused caller can ask for: the preset, the object, and its owner, or that of the nearest object above it
    that the caller may know; `owner` and `owned` are empty if there is none.
    """

    preset: PresetName
    kind: str
    path: str
    owner: str = ""
    owned: str = ""


def access_offer(action: str, *, kind: str, path: str) -> AccessOffer | None:
    """Return what a caller can ask for who was refused an action on an object; None if no preset gives what is missing,
    or the server does not say.
    """
    from limnos.client import ArgumentError, ClientError

    if (opener := reopen.get()) is None or not path:
        return None
    try:
        with opener() as client:
            decision = client.access.explain(action, path, kind=kind or None).decision
            target_kind = getattr(decision.target, "kind", "") or kind
            preset = preset_of(decision.factors)
            if decision.allowed or preset is None or target_kind not in _ASKED_FOR:
                return None
            owner, owned = _nearest_owner(client, path)
            return AccessOffer(preset=preset, kind=target_kind, path=path, owner=owner, owned=owned)
    except (ClientError, ArgumentError, InvalidName):
        return None


def has_children(path: str) -> bool:
    """Return whether the list of a catalog or namespace shows the caller a child.

    Lists only what the list above it shows, of its first `NAMES_MAX` children, so that no list is refused.
    """
    from limnos.client import ArgumentError, ClientError

    if (opener := reopen.get()) is None or not path:
        return False
    try:
        parts = display.parse(path)
        with opener() as client:
            names: Sequence[str] = client.catalogs.names()
            for length, part in enumerate(parts, 1):
                if part not in names:
                    return False
                children = client.children.page(parts[:length], limit=NAMES_MAX).children
                containers = [each.name for each in children if each.kind == "namespace"]
                names = containers if length < len(parts) else [each.name for each in children]
            return bool(names)
    except (ClientError, ArgumentError, InvalidName):
        return False


class OwnedPath(NamedTuple):
    """An object of a path, and its owner, such as `user ana`."""

    path: str
    owner: str


def owner_above(path: str) -> OwnedPath | None:
    """Return the owner of the innermost object of a path that the caller may know; None if the server does not say."""
    from limnos.client import ArgumentError, ClientError

    if (opener := reopen.get()) is None:
        return None
    try:
        with opener() as client:
            owner, owned = _nearest_owner(client, path)
    except (ClientError, ArgumentError, InvalidName):
        return None
    return OwnedPath(owned, owner) if owner else None


def preset_of(factors: Sequence[Factor]) -> PresetName | None:
    """Return the preset that gives all missing rights; None if a denial or a read restriction is among the reasons."""
    clauses: dict[int, set[str]] = {}
    for each in factors:
        if each.kind in {"deny", "restricted", "member"}:
            return None
        if each.kind == "missing":
            clause = clauses.setdefault(each.clause, set())
            if getattr(each.object, "kind", "") not in {"server", "metalake"}:
                clause.add(each.privilege or "")
    return helpful_preset(list(clauses.values()))


def _nearest_owner(client: Client, path: str) -> tuple[str, str]:
    """Return the owner of the innermost object of a path that the caller may know, and that object's path."""
    parts = display.parse(path)
    for length in range(len(parts), 0, -1):
        for each in client.access.objects(parts[:length]).objects:
            if each.owner is not None:
                return f"{each.owner.kind} {each.owner.name}", display.render(parts[:length])
    return "", ""


def close_path(parts: Sequence[str]) -> tuple[str, ...] | None:
    """Return a missing path with each part that does not exist replaced by the name of a close, visible sibling; None
    if a part has no close sibling.
    """
    from limnos.client import ArgumentError, ClientError

    if (opener := reopen.get()) is None or not parts:
        return None
    near: list[str] = []
    try:
        with opener() as client:
            for part in parts:
                names: Sequence[str] = (
                    [each.name for each in client.children.page(tuple(near), limit=NAMES_MAX).children]
                    if near
                    else client.catalogs.names()
                )
                close = [part] if part in names else _close_names(part, names)
                if not close:
                    return None
                near.append(close[0])
    except (ClientError, ArgumentError, InvalidName):
        return None
    return None if near == list(parts) else tuple(near)


def _close_names(name: str, names: Sequence[str]) -> list[str]:
    same = [each for each in names if each.lower() == name.lower()]
    return same or difflib.get_close_matches(name, names, n=1, cutoff=0.7)


NamedKind = Literal["user", "group", "role", "tag", "policy"]
"""A kind of things with a name of their own in a metalake."""


def close_name(kind: NamedKind, name: str) -> str | None:
    """Return the nearest name of a user, group, role, tag or policy to a missing one, among those that the caller may
    list; None if none is close.
    """
    from limnos.client import ArgumentError, ClientError

    if (opener := reopen.get()) is None:
        return None
    try:
        with opener() as client:
            names = names_of(client, kind)
    except (ClientError, ArgumentError, InvalidName):
        return None
    return next(iter(_close_names(name, [each for each in names if each != name])), None)


def names_of(client: Client, kind: NamedKind) -> list[str]:
    """Return the names of all users, groups, roles, tags or policies that the caller may list, at most `LISTED_MAX`.
    Raises ClientError.
    """
    lists: dict[NamedKind, Callable[[], Sequence[str]]] = {
        "user": lambda: [each.name for each in client.users.list()],
        "group": lambda: [each.name for each in client.groups.list()],
        "role": client.roles.list,
        "tag": lambda: [each.name for each in client.tags.list()],
        "policy": lambda: [each.name for each in client.policies.list()],
    }
    return list(lists[kind]()[:LISTED_MAX])


class KnownPath(NamedTuple):
    """How much of a path a caller may know: the number of its first parts, and the kinds of the objects there. Nothing
    is known of the rest: it is missing, or hidden from the caller.
    """

    length: int
    kinds: tuple[str, ...]


def known_path(parts: Sequence[str]) -> KnownPath | None:
    """Return how much of a path the caller may know; None if the server does not say, or if the path is in a catalog
    of an external system, which may have objects that the server does not list.
    """
    from limnos.client import ArgumentError, ClientError

    if (opener := reopen.get()) is None or not parts:
        return None
    try:
        with opener() as client:
            for length in range(len(parts), 0, -1):
                lookup = client.access.objects(parts[:length])
                if lookup.objects:
                    return KnownPath(length, tuple(each.kind for each in lookup.objects))
                if not lookup.complete:
                    return None
    except (ClientError, ArgumentError, InvalidName):
        return None
    return KnownPath(0, ())


def table_format(parts: Sequence[str]) -> str | None:
    """Return the format of a visible table, such as `lance`; None if the server does not say."""
    return next((each.format for each in _children_named(parts) if each.kind == "table"), None)


def is_listed_table(parts: Sequence[str]) -> bool:
    """Return whether a list of a namespace, also of a schema of an external system, has a table."""
    return any(each.kind == "table" for each in _children_named(parts))


def _children_named(parts: Sequence[str]) -> list[ChildInfo]:
    """Return the visible objects at a path, of the first `NAMES_MAX` in their namespace."""
    from limnos.client import ArgumentError, ClientError

    if (opener := reopen.get()) is None or len(parts) < 2:
        return []
    try:
        with opener() as client:
            children = client.children.page(tuple(parts[:-1]), limit=NAMES_MAX).children
    except (ClientError, ArgumentError, InvalidName):
        return []
    return [each for each in children if each.name == parts[-1]]


def path_below_a_catalog(parts: Sequence[str]) -> tuple[str, ...] | None:
    """Return the one visible object that a path without its catalog, or its last part alone, names; None if there is
    none, or if there are several.
    """
    from limnos.client import ArgumentError, ClientError

    if (opener := reopen.get()) is None or not parts:
        return None
    try:
        with opener() as client:
            catalogs = client.catalogs.names()[:_CATALOGS_MAX]
            below = [(each, *parts) for each in catalogs if client.access.objects((each, *parts)).objects]
            if not below:
                hits = client.searches.find(parts[-1]).hits
                below = [
                    tuple(each.path)
                    for each in hits
                    if len(each.path) > len(parts) and tuple(each.path[-len(parts) :]) == tuple(parts)
                ]
    except (ClientError, ArgumentError, InvalidName):
        return None
    return below[0] if len(below) == 1 else None


class NamedObject(NamedTuple):
    """The kind and the path of an object."""

    kind: str
    path: tuple[str, ...]


def objects_named(name: str) -> tuple[NamedObject, ...]:
    """Return the visible objects in catalogs whose own name is `name`, at most three; empty if the server does not
    say.
    """
    from limnos.client import ArgumentError, ClientError

    if (opener := reopen.get()) is None:
        return ()
    try:
        with opener() as client:
            hits = client.searches.find(name).hits
    except (ClientError, ArgumentError, InvalidName):
        return ()
    named_objects = [
        NamedObject(each.kind, tuple(each.path)) for each in hits if len(each.path) > 1 and each.path[-1] == name
    ]
    return tuple(dict.fromkeys(named_objects))[:_NAMED_MAX]


def dropped_kind(path: Sequence[str]) -> str | None:
    """Return the kind of the newest dropped object at a path that the caller may restore; None if the server does not
    say.
    """
    from limnos.client import ArgumentError, ClientError

    if (opener := reopen.get()) is None or len(path) < 2:
        return None
    try:
        with opener() as client:
            items = client.trash.list(path, limit=_DROPPED_MAX)
    except (ClientError, ArgumentError, InvalidName):
        return None
    return next((each.kind for each in items if tuple(each.path) == tuple(path)), None)


def metalake_names() -> tuple[str, ...] | None:
    """Return the metalakes that the caller may know; None if the server does not say."""
    from limnos.client import ArgumentError, ClientError

    if (opener := reopen.get()) is None:
        return None
    try:
        with opener() as client:
            return tuple(each.name for each in client.metalakes.list())
    except (ClientError, ArgumentError):
        return None


def exists(kind: Literal["user", "group", "role", "tag"], name: str) -> bool:
    """Return whether there is a user, group, role or tag of a name that the caller may know."""
    from limnos.client import ArgumentError, ClientError

    if (opener := reopen.get()) is None:
        return False
    try:
        with opener() as client:
            loads: dict[str, Callable[[str], object]] = {
                "user": client.users.get,
                "group": client.groups.get,
                "role": client.roles.get,
                "tag": client.tags.get,
            }
            loads[kind](name)
    except (ClientError, ArgumentError, InvalidName):
        return False
    return True


def own_role_of(kind: Literal["user", "group"], name: str, *, path: str | None) -> str | None:
    """Return the role of its own that a preset gave a user or group, as `user:ana`; None without one, or if the caller
    may not know. A caller who may not load the user or group sees the role in the access to the object at `path`.
    """
    from limnos.client import ArgumentError, ClientError, DeniedError

    if (opener := reopen.get()) is None:
        return None
    role = f"{kind}:{name}"
    try:
        with opener() as client:
            principal = client.users.get(name) if kind == "user" else client.groups.get(name)
            return role if role in principal.roles else None
    except DeniedError:
        return role if path is not None and has_role_with_access(role, path) else None
    except (ClientError, ArgumentError, InvalidName):
        return None


def has_role_with_access(role: str, path: str) -> bool:
    """Return whether users have access to an object by a role, as far as a caller who may grant on it sees."""
    from limnos.client import ArgumentError, ClientError

    if (opener := reopen.get()) is None:
        return False
    try:
        with opener() as client:
            holders = client.access.holders(path, limit=_HOLDERS_MAX).holders
    except (ClientError, ArgumentError, InvalidName):
        return False
    return any(each.role == role for holder in holders for factors in holder.may.values() for each in factors)


def other_metalake(name: str, lists_command: str, *, creates_command: str) -> str | None:
    """Return the hint for a metalake that is none of those that the caller may know: an empty server has none. None if
    the server does not say, or if the caller knows it.
    """
    names = metalake_names()
    if names is None or name in names:
        return None
    if not names:
        return (
            f"there is no metalake {name} that you may know; on a new server '{creates_command}' creates it, which a"
            " service admin may; if it exists, its owner adds you with 'limnos create user'"
        )
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    lists = f"there is no metalake {name} that you may know: '{lists_command}' lists them"
    return f"{lists}; did you mean {near[0]}?" if near else lists


def needs_extra(error: ClientError) -> bool:
    """Return whether the server lacks an extra that is to be installed: no later request succeeds without it."""
    return _INSTALLS_EXTRA.search(error.message) is not None


def not_signed_in() -> str:
    """Return the message for a command that sent no credential, with the server that refused it."""
    used = used_server.get()
    server = "" if used is None else f" to {used.uri}"
    return f"you are not signed in{server}: this command sent no credential"


def unknown_token(error: ClientError) -> str | None:
    """Return the message for a token that the server does not know: which server, and whose token; None for other
    errors, and before a command uses a server.
    """
    used = used_server.get()
    if used is None or not error.message.startswith("The token is not valid: "):
        return None
    return f"{used.uri} does not know {used.credential}: it is of another server or store, or it was revoked"
