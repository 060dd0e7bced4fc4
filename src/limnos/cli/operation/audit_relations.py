# SPDX-License-Identifier: Apache-2.0
"""Audit records that answer a question about a path although they have another one: moves to it, changes of access to
the containers above it, assignments of roles that hold privileges there, and what a user or group was given on other
objects.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from limnos.client import ClientError
from limnos.client.values import AuditLine, AuditPage
from limnos.names import display
from limnos.names.errors import InvalidName

if TYPE_CHECKING:
    from limnos.client import Client

PAGE: Final = 1000
_ROLE = re.compile(
    r"^role (?P<first>.+?): (?P<what>(?:no longer )?(?:allow|deny) .+)$|^(?P<former>.+), role (?P<last>.+)$"
)
"""The detail of a grant: the role and its privileges. Records of earlier releases have the role at the end."""
_PRIVILEGE = re.compile(r"(?:no longer )?(?:allow |(deny ))([A-Z_]+) on .+")
_PRESET = re.compile(
    r"(?:grant|revoke) (?P<preset>preset \S+) on .+ (?:to|from) (?P<holder>(?:user|group|role) .+?)"
    r"(?:: (?:nothing to change|[a-z-]+))?"
)
"""The detail of a refused change by a preset, or of one that changed nothing."""
_INHERITED: Final = frozenset(
    {"access", "grant", "revoke", "privilege_grant", "owner", "own", "restriction", "restrict", "unrestrict"}
)
"""Actions on an object that count for all objects below it."""
_INHERITED_CHANGES: Final = frozenset({"grant", "revoke", "own", "restrict", "unrestrict"})
_SCANNED = 5_000
"""The maximum number of records about the containers. Of a name alone, which may be that of a user or group, these are
the newest records of all objects.
"""


_ASSIGNMENTS: Final = {"access": ("give", "take"), "grant": ("give",), "revoke": ("take",)}
"""The changes that assign roles to users and groups, or revoke them, by the requested family of actions."""
_MEMBERSHIPS: Final = {"access": ("join", "leave")}
"""The changes of members of groups, by the requested family of actions."""
_RULES_MAX: Final = 1_000
"""The number of grants among which the roles that hold privileges on an object are looked for."""


class RelatedLines(NamedTuple):
    """Records with another path than the requested one: moves to it, those of the containers `above` the object, whose
    path is now `present`, and those of what the user or group of that name was given elsewhere. `assigned` are changes
    of who has a role with privileges there: assignments of the role, and memberships of groups that have it. `of_role`
    are what the role of that name was given or lost, and who was given it.
    """

    moves: list[AuditLine]
    above: list[AuditLine]
    present: str | None
    received: list[AuditLine]
    assigned: tuple[AuditLine, ...] = ()
    of_role: tuple[AuditLine, ...] = ()


def related_lines(
    client: Client, path: str | None, *, expected: dict[str, object], own: Sequence[AuditLine] = ()
) -> RelatedLines:
    """Return the records that the other filters allow and whose path is another one.

    Args:
        client: A client of the server.
        path: The requested path.
        expected: The filters of `client.audit.read`.
        own: The records of the path itself.
    """
    object_id, action = expected["object_id"], expected["action"]
    present = path
    if isinstance(object_id, int):
        present = _present_path(client, object_id, server=bool(expected["server"])) if action in _INHERITED else None
    moves = _moves_into(client, path, expected=expected) if path is not None and object_id is None else []
    if present is None or action not in _INHERITED:
        return RelatedLines(moves=moves, above=[], present=present, received=[])
    try:
        parts = display.parse(present)
    except InvalidName:
        return RelatedLines(moves=moves, above=[], present=present, received=[])
    containers = {display.render(parts[:length]) for length in range(1, len(parts))}
    filters = {**expected, "path": None, "object_id": None}
    if containers:
        metalake = client.audit.scope.metalake
        filters["exact"] = tuple(dict.fromkeys((metalake, display.render_part(metalake), *sorted(containers))))
    newest, _ = read_lines(client, filters, limit=_SCANNED)
    received = [line for line in newest if _is_received(line, parts[0])] if len(parts) == 1 else []
    is_principal = len(parts) == 1 and (bool(received) or any(_is_of_principal(line, parts[0]) for line in newest))
    above = [] if is_principal else [line for line in newest if _is_above(line, containers)]
    of_role = tuple(line for line in newest if len(parts) == 1 and _is_of_role(line, parts[0]))
    has_roles = bool(containers) or not (is_principal or of_role)
    assigned = _assigned_lines(client, present, lines=[*own, *above], filters=expected) if has_roles else ()
    return RelatedLines(
        moves=moves, above=above, present=present, received=received, assigned=assigned, of_role=of_role
    )


def _assigned_lines(
    client: Client, path: str, *, lines: Sequence[AuditLine], filters: dict[str, object]
) -> tuple[AuditLine, ...]:
    """Return the records of who got or lost a role that holds privileges on an object or above it, or held them in one
    of `lines`, and of who joined or left a group with such a role.
    """
    family = str(filters["action"])
    if family not in _ASSIGNMENTS:
        return ()
    roles = {
        receiver.removeprefix("role ") for line in lines if (receiver := grant_of(line)["receiver"]).startswith("role ")
    }
    groups: set[str] = set()
    try:
        rules = client.access.rules(path, limit=_RULES_MAX).rules
        roles |= {each.role for each in rules}
        has_groups = any(each.groups for each in rules)
    except (ClientError, InvalidName):
        has_groups = True  # the caller may not know it
    if not roles:
        return ()
    details = {f"role {spelling}" for role in roles for spelling in (role, display.render_part(role))}
    results: list[AuditLine] = []
    try:
        for change in _ASSIGNMENTS[family]:
            results += _lines_with(client, change, details=details, filters=filters)
        if family in _MEMBERSHIPS and has_groups:
            groups = {each.name for each in client.groups.list() if not roles.isdisjoint(each.roles)}
        groups |= {line.object.path for line in results if line.object is not None and line.object.kind == "group"}
        details = {f"group {spelling}" for group in groups for spelling in (group, display.render_part(group))}
        for change in _MEMBERSHIPS.get(family, ()) if groups else ():
            results += _lines_with(client, change, details=details, filters=filters)
    except ClientError:
        return tuple(results)
    return tuple(results)


def _lines_with(client: Client, change: str, *, details: Container[str], filters: dict[str, object]) -> list[AuditLine]:
    """Return the newest records of a change that have one of some details. The assignment of an own role, as `role
    user:ana` to ana, is left out: the grant to that role names its holder.
    """
    lines, _ = read_lines(client, {**filters, "path": None, "object_id": None, "action": change}, limit=_SCANNED)
    return [
        line
        for line in lines
        if line.detail in details
        and line.object is not None
        and line.detail != f"role {line.object.kind}:{line.object.path.replace('`', '')}"
    ]


def read_lines(client: Client, expected: dict[str, object], *, limit: int) -> tuple[list[AuditLine], AuditPage]:
    """Return up to `limit` audit records, newest first, and the page of the last ones."""
    lines: list[AuditLine] = []
    before: int | None = None
    while True:
        page = client.audit.read(**expected, before=before, limit=min(limit - len(lines), PAGE))  # type: ignore[arg-type]
        lines += page.lines
        before = page.next
        if not page.more or len(lines) >= limit:
            return lines, page


def moved_id(
    client: Client, moves: Sequence[AuditLine], *, path: str | None, expected: dict[str, object]
) -> int | str | None:
    """Return the id of the object at a path if it had other names; None for one without a move, or if the search does
    not find it. `moves` are its moves among the requested records, which filters may leave out.
    """
    if path is None:
        return None
    filters = {name: None for name in expected if name not in {"path", "server"}}
    if not moves and any(expected[name] is not None for name in filters):
        moves = _moves_into(client, path, expected={**expected, **filters, "action": "move"})
    former = moves[0].object if moves else None
    return None if former is None else former.id


def _present_path(client: Client, object_id: int, *, server: bool) -> str | None:
    """Return the path of the object with an id: as the search has it, else as in its newest record; None without a
    record.
    """
    try:
        newest = client.audit.read(object_id=object_id, server=server, limit=1).lines
        if not newest:
            return None
        path = newest[0].new_path or (newest[0].object.path if newest[0].object else "")
        parts = display.parse(path)
        paths = [hit.path for hit in client.searches.find(parts[-1]).hits if hit.id == object_id]
    except (ClientError, InvalidName):
        return None
    return display.render(paths[0]) if paths else path


def _moves_into(client: Client, path: str, *, expected: dict[str, object]) -> list[AuditLine]:
    """Return the records of renames and moves to a path of the object that is there now. The server filters by the
    former path; nothing is returned for an object that the search does not find.
    """
    try:
        parts = tuple(display.parse(path))
        ids = [hit.id for hit in client.searches.find(parts[-1]).hits if tuple(hit.path) == parts]
        moves: list[AuditLine] = []
        for object_id in ids:
            filters = {**expected, "path": None, "object_id": object_id}
            lines, _ = read_lines(client, filters, limit=PAGE)
            moves += [line for line in lines if line.new_path == expected["path"]]
    except (ClientError, InvalidName):
        return []
    return moves


def _is_above(line: AuditLine, containers: Container[str]) -> bool:
    """Return whether a record is about access to the metalake or to one of the containers. Grants of nothing but the
    creation of objects are left out, since they give no access to what exists.
    """
    about = line.object
    if about is None or line.change not in _INHERITED_CHANGES:
        return False
    privileges = [each.removeprefix("deny ") for each in grant_of(line)["privileges"].split(", ")]
    is_about_content = not all(each.startswith("CREATE_") for each in privileges)
    is_container = about.kind == "metalake" or (about.kind in {"catalog", "namespace"} and about.path in containers)
    return is_container and is_about_content


def _is_of_principal(line: AuditLine, name: str) -> bool:
    """Return whether a record is about the user or group of a name, which no grant on the metalake is about."""
    about = line.object
    return about is not None and about.kind in {"user", "group"} and about.path in {name, display.render_part(name)}


def _is_received(line: AuditLine, name: str) -> bool:
    """Return whether a record of another object is about what a user or group has: an ownership that begins or ends, or
    a grant to the own role of that user or group.
    """
    holders = {f"{kind} {each}" for kind in ("user", "group") for each in (name, display.render_part(name))}
    if line.change == "own":
        return not holders.isdisjoint((line.detail or "").removeprefix("owner ").split(", before "))
    roles = {f"role {each.replace(' ', ':', 1)}" for each in holders}
    return line.change in {"grant", "revoke"} and grant_of(line)["receiver"].replace("`", "") in roles


def _is_of_role(line: AuditLine, name: str) -> bool:
    """Return whether a record is about what a role was given or lost, or who was given the role or lost it."""
    if line.change in {"give", "take"}:
        return line.detail in {f"role {name}", f"role {display.render_part(name)}"}
    return grant_of(line)["receiver"].replace("`", "") == f"role {name}"


def grant_of(line: AuditLine) -> dict[str, str]:
    """Return who received a role or privileges, or lost them, and which; empty texts for other records."""
    detail, about = line.detail or "", line.object
    if line.change in {"give", "take"} and about is not None:
        return {"receiver": f"{about.kind} {about.path}", "privileges": detail}
    if (by_preset := _PRESET.fullmatch(detail)) is not None:
        return {"receiver": by_preset["holder"], "privileges": by_preset["preset"]}
    match = _ROLE.match(detail) if line.change in {"grant", "revoke"} else None
    if match is None:
        return {"receiver": "", "privileges": detail if line.change in {"grant", "revoke"} else ""}
    words = [_PRIVILEGE.sub(r"\1\2", each) for each in (match["what"] or match["former"]).split(", ")]
    return {"receiver": f"role {match['first'] or match['last']}", "privileges": ", ".join(words)}
