# SPDX-License-Identifier: Apache-2.0
"""Users, groups and roles as arguments of commands: `user:ana`, `group:staff`, `role:reader`, or a name alone."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, NamedTuple

from limnos.cli.failures import UsageError
from limnos.cli.lookups import close_name
from limnos.cli.output import visible
from limnos.client.errors import ArgumentError, ClientError, DeniedError, NotFoundError
from limnos.names.errors import InvalidName

if TYPE_CHECKING:
    from limnos.client import Client

HolderKind = Literal["user", "group", "role"]
_KINDS: tuple[HolderKind, ...] = ("user", "group", "role")


class Holder(NamedTuple):
    """A user, group or role that gets or loses rights."""

    kind: HolderKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    def argument(self, kind: HolderKind) -> str | None:
        """Return the name if the holder is of the kind, else None: the value of a call's argument for that kind."""
        return self.name if self.kind == kind else None


def parse_holder(text: str) -> Holder | None:
    """Parse `user:NAME`, `group:NAME` or `role:NAME`; None for a name alone."""
    word, colon, name = text.partition(":")
    kind = next((each for each in _KINDS if each == word), None)
    return Holder(kind, name) if kind is not None and colon and name else None


def find_holder(client: Client, text: str) -> Holder:
    """Return the holder that an argument names. Raises UsageError for a name alone that is missing or ambiguous."""
    holder = parse_holder(text)
    if holder is not None:
        return holder
    reads: dict[HolderKind, Callable[[str], object]] = {
        "user": client.users.get,
        "group": client.groups.get,
        "role": client.roles.get,
    }
    exists_by_kind = {kind: _exists(read, text) for kind, read in reads.items()}
    kinds = [kind for kind, is_known in exists_by_kind.items() if is_known]
    if len(kinds) == 1:
        return Holder(kinds[0], text)
    if not kinds and "," in text:
        raise UsageError(f"'{text}' is not one user, group or role", hint="give one, and repeat the command for others")
    if not kinds:
        creates = shlex.join(["limnos", "create", "user", text])
        spellings = " or ".join(f"{kind}:{text}" for kind in _KINDS)
        near = [f"{kind}:{close}" for kind in _KINDS if (close := close_name(kind, text)) is not None]
        if near:
            raise UsageError(
                f"there is no user, group or role '{text}' that you may see",
                hint=f"did you mean {' or '.join(near)}? '{creates}' creates a user",
            )
        if None in exists_by_kind.values():
            raise UsageError(
                f"there is no user, group or role '{text}' that you may see", hint=f"for a hidden one write {spellings}"
            )
        raise UsageError(
            f"there is no user, group or role '{text}' that you may see",
            hint=f"'{creates}' creates a user; for a hidden one write {spellings}",
        )
    spellings = " or ".join(f"{kind}:{text}" for kind in kinds)
    reason = f"there are a {' and a '.join(kinds)} of this name"
    raise UsageError(f"'{text}' is not one user, group or role: {reason}", hint=f"write {spellings}")


def _exists(read: Callable[[str], object], name: str) -> bool | None:
    """Return whether a holder exists; None if the caller may not know."""
    try:
        read(name)
    except NotFoundError:
        return False
    except DeniedError:
        return None
    return True


def require_existing(read: Callable[[str], object], name: str) -> None:
    """Raise NotFoundError if a holder does not exist: no question stands before that answer. A caller who may not read
    the holder is not refused here.
    """
    with suppress(DeniedError):
        read(name)


def user_of(text: str | None, *, instead: list[str]) -> str | None:
    """Return the user whom `--for` names, as NAME or user:NAME. Raises UsageError for a group or role, with the command
    to type instead.
    """
    holder = parse_holder(text or "")
    if holder is None:
        return text
    if holder.kind != "user":
        raise UsageError(
            f"--for takes a user, and {holder.name} is a {holder.kind}",
            hint=f"'{shlex.join(['limnos', *instead])}' has the users, groups and roles that may",
        )
    return holder.name


def is_missing_user(client: Client, user: str) -> bool:
    """Return whether the server says that a user does not exist; False if the caller may not know."""
    try:
        client.users.get(user)
    except (ClientError, InvalidName) as error:
        return isinstance(error, NotFoundError)
    return False


def note_missing_user(client: Client, user: str | None, *, has_rows: bool) -> None:
    """Print a note if a list of what a user has is empty because there is no such user."""
    if user is None or has_rows or not is_missing_user(client, user):
        return
    near = close_name("user", user)
    meant = "" if near is None else f"; did you mean {near}?"
    print(
        visible(f"note: user {user} does not exist: 'limnos list users' lists the existing ones{meant}"),
        file=sys.stderr,
    )


def note_own_role(client: Client, role: str) -> None:
    """Print a note if the own role of a user or group who was removed stays, with its grants."""
    try:
        grants = sum(len(each.privileges) for each in client.roles.get(role).securable_objects)
    except (ClientError, ArgumentError):
        return
    command = shlex.join(["limnos", "delete", "role", role])
    text = f"note: role {role} stays, with {grants} grants: '{command}' deletes it"
    print(visible(text), file=sys.stderr)
