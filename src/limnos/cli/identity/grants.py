# SPDX-License-Identifier: Apache-2.0
"""`grant` and `revoke`: presets to users, groups and roles, roles to users and groups, privileges to roles.

The server checks whether a privilege applies to an object.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, TypeVar

from cyclopts import Parameter

from limnos.cli.common import DEFAULTS, CommonFlags, KindFlag
from limnos.cli.failures import StoppedError, UsageError
from limnos.cli.identity.comparisons import show_consequence
from limnos.cli.identity.presets import PresetCommand, change_preset
from limnos.cli.identity.principals import Holder, parse_holder
from limnos.cli.lookups import own_role_of
from limnos.cli.output import show_done
from limnos.cli.sql_grants import SQL_PRIVILEGES
from limnos.client.errors import ClientError, DeniedError, NotFoundError
from limnos.client.values import Role
from limnos.model.presets import PresetName
from limnos.model.privileges import ALIASES, Privilege
from limnos.names import display
from limnos.names.errors import InvalidName

if TYPE_CHECKING:
    from limnos.client import Client

T = TypeVar("T")
_PRESET_WORDS = {"reader": "reader", "writer": "writer", "admin": "admin", "all": "admin"}
"""Words that people type where privileges stand, and the presets that are meant."""
OnFlag = Annotated[str | None, Parameter(help="The object, as `main.raw.nyc`; objects below it are included.")]
OnMetalakeFlag = Annotated[bool, Parameter(negative="", help="The metalake itself instead of an object in it.")]
WhatIfFlag = Annotated[
    bool,
    Parameter(name="--what-if", negative="", help="Show which users would gain or lose access, and change nothing."),
]
PresetFlag = Annotated[
    PresetName | None,
    Parameter(help="All that a reader, writer or admin of the object needs, here and above it, instead of privileges."),
]
DenyFlag = Annotated[bool, Parameter(negative="", help="Deny instead of allow; a denial overrides every grant.")]

_EXAMPLES = "write 'limnos {0} role ROLE {1} USER', or 'limnos {0} select_table --on main.raw.nyc {1} ROLE'"


@dataclass(frozen=True, slots=True, kw_only=True)
class _GrantCommand:
    """A grant or revoke command as typed. `holder` is a user, group or role."""

    verb: str
    names: Sequence[str]
    holder: str | None
    group: str | None
    on: str | None
    on_metalake: bool
    kind: str | None
    deny: bool
    preset: PresetName | None = None
    is_question: bool = False

    @property
    def preposition(self) -> str:
        return "to" if self.verb == "grant" else "from"

    def to_text(self, *words: str) -> str:
        """Return the command with other words, for a hint: a question stays one."""
        return shlex.join(["limnos", self.verb, *words, *(["--what-if"] if self.is_question else [])])


def grant(
    *what: str,
    preset: PresetFlag = None,
    to: Annotated[
        str | None,
        Parameter(
            help="Who gets it: `user:ana`, `group:staff`, `role:analyst`, or a name alone if it is only one of these."
        ),
    ] = None,
    to_group: Annotated[str | None, Parameter(help="The group that gets the role.")] = None,
    on: OnFlag = None,
    on_metalake: OnMetalakeFlag = False,
    kind: KindFlag = None,
    deny: DenyFlag = False,
    what_if: WhatIfFlag = False,
    common: CommonFlags = DEFAULTS,
) -> None:
    """Grant a preset on an object to a user, group or role; a role to a user or group; or privileges to a role.

    `limnos grant role analyst --to ana` · `limnos grant --preset reader main.raw.nyc --to user:ana`

    Parameters
    ----------
    what
        With `--preset` the object; `role` and the names of roles; or privileges, as `select_table`. The privileges are
        create_catalog, use_catalog, create_schema, use_schema, create_table, select_table, modify_table, create_view,
        select_view, create_fileset, read_fileset, write_fileset, create_topic, consume_topic, produce_topic,
        register_model, use_model, link_model_version, register_function, execute_function, modify_function,
        manage_users, manage_groups, create_role, manage_grants, create_tag, apply_tag, create_policy, apply_policy,
        register_job_template, use_job_template, run_job.
    """
    _execute(
        _GrantCommand(
            verb="grant",
            preset=preset,
            names=what,
            holder=to,
            group=to_group,
            on=on,
            on_metalake=on_metalake,
            kind=kind,
            deny=deny,
            is_question=what_if,
        ),
        common,
    )


def revoke(
    *what: str,
    preset: PresetFlag = None,
    from_: Annotated[str | None, Parameter(name="--from")] = None,
    from_group: str | None = None,
    on: OnFlag = None,
    on_metalake: OnMetalakeFlag = False,
    kind: KindFlag = None,
    deny: Annotated[bool, Parameter(negative="")] = False,
    what_if: WhatIfFlag = False,
    common: CommonFlags = DEFAULTS,
) -> None:
    """Revoke a preset on an object from a user, group or role; a role from a user or group; or privileges from a role.

    `limnos revoke --preset reader main.raw.nyc --from user:ana` · `limnos revoke role analyst --from ana` · `limnos
    revoke select_table --on main.raw.nyc --from analyst`

    Parameters
    ----------
    what
        With `--preset` the object; `role` and the names of roles; or privileges, as `select_table`.
    from_
        The user, group or role that loses the preset, the user who loses the role, or the role that loses privileges.
    from_group
        The group that loses the role.
    deny
        Revoke a denial instead of a grant.
    """
    _execute(
        _GrantCommand(
            verb="revoke",
            preset=preset,
            names=what,
            holder=from_,
            group=from_group,
            on=on,
            on_metalake=on_metalake,
            kind=kind,
            deny=deny,
            is_question=what_if,
        ),
        common,
    )


def _execute_preset(command: _GrantCommand, preset: PresetName, *, common: CommonFlags) -> None:
    if command.deny:
        raise UsageError("a preset is allowed, never denied: --deny is for privileges")
    paths = [*command.names, *([command.on] if command.on is not None else [])]
    is_one = len(paths) + command.on_metalake == 1
    principal_names = [each for each in paths if "." not in each]
    if len(paths) == 2 and len(principal_names) == 1 and command.holder is None and command.group is None:
        path = next(each for each in paths if each != principal_names[0])
        correction = command.to_text("--preset", preset, path, f"--{command.preposition}", principal_names[0])
        raise UsageError(f"the holder of a preset is an option, --{command.preposition}", hint=f"'{correction}'")
    if (command.holder is None) == (command.group is None):
        raise UsageError(
            f"name one holder of the preset: --{command.preposition} user:NAME, group:NAME or role:NAME",
            hint=_preset_line(command, preset, path=paths[0] if is_one and paths else "PATH"),
        )
    if not is_one:
        raise UsageError("name one object of the preset", hint=_preset_line(command, preset, path="PATH"))
    change_preset(
        PresetCommand(
            verb=command.verb,
            preset=preset,
            path=paths[0] if paths else None,
            kind=command.kind,
            holder=command.holder or f"group:{command.group}",
            is_question=command.is_question,
        ),
        common,
    )


def _preset_line(command: _GrantCommand, preset: PresetName, *, path: str) -> str:
    """Return the command for a preset, with the object and the holder that were typed, and words in capitals for
    others: an example with other names would change another object's access if it were pasted.
    """
    flag, kind = f"--{command.preposition}", ["--kind", command.kind] if command.kind else []
    place = ["--on-metalake"] if command.on_metalake else [path, *kind]
    holders = [each for each in (command.holder, command.group and f"group:{command.group}") if each]
    holder = holders[0] if len(holders) == 1 else "user:NAME"
    return f"'{command.to_text('--preset', preset, *place, flag, holder)}'"


def _execute(command: _GrantCommand, common: CommonFlags) -> None:
    if command.preset is not None:
        _execute_preset(command, command.preset, common=common)
        return
    command = _without_prefix(command, common)
    if not command.names or command.names == ("role",):
        raise UsageError(f"nothing to {command.verb}", hint=_EXAMPLES.format(command.verb, f"--{command.preposition}"))
    if command.names[0] == "role":
        _check_roles(command)
        with common.client() as client:
            if command.is_question:
                roles, gives = command.names[1:], command.verb == "grant"
                consequence = client.access.what_if_assigned(
                    roles, user=command.holder, group=command.group, assigns=gives
                )
                show_consequence(consequence, output_format=common.output_format)
                return
            missing = _change_roles(client, command)
        message, result = _roles_result(command, missing)
    else:
        names = [name for each in command.names for name in each.split(",") if name]
        privileges = [_privilege(name, command) for name in names]
        _check_privileges(command)
        with common.client() as client:
            kind = "metalake" if command.on_metalake else command.kind or client.objects.kind(command.on or "")
            target = common.metalake if command.on_metalake else command.on or ""
            if command.is_question:
                path = () if command.on_metalake else target
                consequence = client.access.what_if_granted(
                    command.holder or "",
                    privileges,
                    path=path,
                    kind=kind,
                    grants=command.verb == "grant",
                    condition="deny" if command.deny else "allow",
                )
                show_consequence(consequence, output_format=common.output_format)
                return
            missing, elsewhere = _change_role(client, command, privileges, target=target, kind=kind)
        message, result = _privileges_result(command, privileges, missing=missing, target=target, kind=kind)
        message += elsewhere
    show_done(message, result, output_format=common.output_format)


def _without_prefix(command: _GrantCommand, common: CommonFlags) -> _GrantCommand:
    """Return the command with `user:ana`, `group:staff` or `role:analyst` as a name and its kind. Raises UsageError for
    a kind that cannot hold it.
    """
    if command.group is not None and command.holder is None and command.names[:1] != ("role",):
        command = replace(command, holder=f"group:{command.group}", group=None)
    holder = None if command.holder is None else parse_holder(command.holder)
    if holder is None:
        return command
    if command.names[:1] == ("role",):
        if holder.kind == "role":
            raise UsageError("a role is granted to a user or a group, not to a role")
        is_group = holder.kind == "group" and command.group is None
        return replace(
            command, holder=None if is_group else holder.name, group=holder.name if is_group else command.group
        )
    if holder.kind != "role":
        what = "a denial is held by a role" if command.deny else "privileges are held by roles"
        raise UsageError(f"{what}, not by a {holder.kind}", hint=_of_principal(command, holder, common=common))
    return replace(command, holder=holder.name)


def _of_principal(command: _GrantCommand, holder: Holder, *, common: CommonFlags) -> str:
    """Return the hint for privileges of a user or a group: a preset if its word was typed, else the privileges for a
    role, which is the own role of the holder if a preset gave it one. A preset that was not typed would give more.
    """
    flag, typed_holder = f"--{command.preposition}", str(command.holder)
    preset = next((word for name in command.names if (word := _PRESET_WORDS.get(name.lower()))), None)
    if preset is not None and not command.deny:
        path = command.on or next((name for name in command.names if "." in name), "PATH")
        return f"a preset goes to a {holder.kind}: '{command.to_text('--preset', preset, path, flag, typed_holder)}'"
    words = [*command.names, *_on(command)]
    denial = ["--deny"] if command.deny else []
    if (role := _own_role(holder, command.on, common=common)) is not None:
        correction = command.to_text(*words, flag, f"role:{role}", *denial)
        return f"'{correction}': presets gave {holder} the role {role}"
    if command.verb == "revoke":
        shows = shlex.join(["limnos", "show", holder.kind, holder.name])
        return f"'{shows}' shows the roles, and '{command.to_text(*words, flag, 'role:ROLE', *denial)}'"
    correction = command.to_text(*words, flag, "ROLE", *denial)
    return f"'limnos create role ROLE', '{correction}', then '{command.to_text('role', 'ROLE', flag, typed_holder)}'"


def _own_role(holder: Holder, path: str | None, *, common: CommonFlags) -> str | None:
    """Return the role that presets gave a user or group; None without one, or if the server does not say."""
    if holder.kind == "role":
        return None
    with suppress(ClientError, StoppedError, UsageError), common.client():
        return own_role_of(holder.kind, holder.name, path=path)
    return None


def _on(command: _GrantCommand) -> list[str]:
    if command.on is None:
        return ["--on-metalake"] if command.on_metalake else []
    return ["--on", command.on, *(["--kind", command.kind] if command.kind else [])]


def _check_roles(command: _GrantCommand) -> None:
    if command.on is not None or command.on_metalake or command.deny or command.kind:
        raise UsageError("a role is granted as a whole: --on, --on-metalake, --kind and --deny are for privileges")
    if (command.holder is None) == (command.group is None):
        flag = f"--{command.preposition}"
        roles = [name for name in command.names[1:] if name.lower() not in {"to", "from", "user"}]
        holder = roles[-1] if len(roles) > 1 else "USER"
        correction = command.to_text("role", *(roles[:-1] or roles), flag, holder)
        raise UsageError(
            f"name one holder of the role: {flag} USER or {flag}-group GROUP", hint=f"'{correction}', if that is a user"
        )


def _check_privileges(command: _GrantCommand) -> None:
    flag = f"--{command.preposition}"
    if command.group is not None or command.holder is None:
        raise UsageError(
            f"privileges are held by roles: name one with {flag} ROLE",
            hint=f"then grant it to users with 'limnos grant role {command.holder or 'ROLE'} --to USER'",
        )
    if (command.on is None) != command.on_metalake:
        raise UsageError("name one object: --on PATH, or --on-metalake for the whole metalake")


def _privilege(text: str, command: _GrantCommand) -> str:
    word = text.lower().replace("-", "_")
    privilege_words = [privilege.word for privilege in Privilege]
    if word in privilege_words or word in ALIASES:
        return word
    flag = f"--{command.preposition}"
    if "," in text:
        words = [part.strip() for name in command.names for part in name.split(",") if part.strip()]
        names = [SQL_PRIVILEGES.get(word.lower(), word) for word in words]
        correction = command.to_text(*names, *_on(command), flag, command.holder or "ROLE")
        raise UsageError("privileges are separated by blanks", hint=f"'{correction}'")
    if text.startswith("role:") and len(text) > len("role:"):
        correction = command.to_text("role", text.removeprefix("role:"), flag, command.holder or "USER")
        raise UsageError(f"a role is named after the word role, not as '{text}'", hint=f"'{correction}'")
    paths = [command.on] if command.on else [name for name in command.names if "." in name]
    if word == "secret":
        number = next((name for name in command.names if name.isdigit()), "ID")
        raise UsageError("a secret is deleted, not revoked", hint=f"'limnos delete secret USER {number}'")
    if word == "user" and command.verb == "revoke" and len(command.names) > 1 and command.holder is None:
        name = shlex.quote(command.names[1])
        raise UsageError(
            "a user is disabled, not revoked",
            hint=f"'limnos user disable {name}' keeps them out at once; 'limnos show user {name}' has the roles, and"
            f" 'limnos revoke role ROLE --from {name}' takes one away",
        )
    preset = _PRESET_WORDS.get(word, "")
    if preset and paths and not command.deny:
        spoken = {paths[0], text, "to", "from", "on", "user"}
        others = [name for name in command.names if name not in spoken]
        holder = command.holder or (others[0] if len(others) == 1 else "HOLDER")
        correction = command.to_text("--preset", preset, paths[0], flag, holder)
        raise UsageError(f"'{text}' is no privilege: the preset {preset} has what one needs", hint=f"'{correction}'")
    if (meant := SQL_PRIVILEGES.get(word)) is not None:
        correction = command.to_text(meant, "--on", command.on or "PATH", flag, command.holder or "ROLE")
        whole = {"read": "reader", "write": "writer"}.get(word)
        also = ""
        if whole is not None and command.on and command.holder and not command.deny:
            with_preset = command.to_text("--preset", whole, command.on, flag, command.holder)
            also = f"; with all that a {whole} needs above it: '{with_preset}'"
        raise UsageError(f"'{text}' is not a privilege", hint=f"'{correction}'{also}")
    privileges = [SQL_PRIVILEGES.get(name.lower(), name.lower()) for name in command.names if name not in paths]
    if command.on is None and text in paths and privileges and {*privileges} <= {*privilege_words, *ALIASES}:
        correction = command.to_text(*privileges, "--on", text, flag, command.holder or "ROLE")
        raise UsageError(f"'{text}' is no privilege: an object stands after --on", hint=f"'{correction}'")
    if command.on is None and len(command.names) <= 2 and "." not in text:
        role, holder = command.names[0], command.holder or (command.names[1:] or ("USER",))[0]
        if "." in holder and not command.deny:
            correction = command.to_text("--preset", "reader", holder, flag, role)
            raise UsageError(f"'{text}' is not a privilege", hint=f"'{correction}', if it is a user")
        correction = command.to_text("role", role, flag, holder)
        raise UsageError(f"'{text}' is not a privilege", hint=f"'{correction}', if it is a role")
    near = difflib.get_close_matches(word, privilege_words, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"privileges are {', '.join(privilege_words)}"
    raise UsageError(f"'{text}' is not a privilege", hint=hint)


def _change_roles(client: Client, command: _GrantCommand) -> list[str]:
    """Grant or revoke the roles. Returns the revoked roles that the holder did not have."""
    roles, holder = command.names[1:], command.holder or ""
    if command.verb == "grant":
        if command.group is not None:
            client.roles.grant_to_group(command.group, roles)
        else:
            client.roles.grant_to_user(holder, roles)
        return []
    group = command.group
    former_principal = _readable(lambda: client.groups.get(group) if group is not None else client.users.get(holder))
    if group is not None:
        client.roles.revoke_from_group(group, roles)
    else:
        client.roles.revoke_from_user(holder, roles)
    return [] if former_principal is None else [name for name in roles if name not in former_principal.roles]


def _change_role(
    client: Client, command: _GrantCommand, privileges: Sequence[str], *, target: str, kind: str
) -> tuple[list[str], str]:
    """Grant or revoke the privileges. Returns the revoked privileges that the role did not have, and the words for
    other objects on which it has them.
    """
    holder = command.holder or ""
    if command.verb == "grant":
        client.roles.allow(holder, privileges, on=target, kind=kind, deny=command.deny)
        return [], ""
    former_role = _readable(lambda: client.roles.get(holder))
    after = client.roles.withdraw(holder, privileges, on=target, kind=kind, deny=command.deny)
    if former_role is None:
        return [], ""
    removed = {name for _, _, name, _ in _rules_of(former_role) - _rules_of(after)}
    missing = [word for word in privileges if (ALIASES[word].word if word in ALIASES else word) not in removed]
    return missing, _grants_above_text(client, after, command=command, missing=missing, target=target)


def _grants_above_text(
    client: Client, role: Role, *, command: _GrantCommand, missing: Sequence[str], target: str
) -> str:
    """Return the words for objects above the target on which a role has privileges that it did not have on the target,
    with the commands that revoke them there; empty without any.
    """
    own_effect = "deny" if command.deny else "allow"
    words = {ALIASES[word].word if word in ALIASES else word for word in missing}
    above: list[str] = []
    for each in role.securable_objects:
        names = sorted(
            name for one in each.privileges if one.condition == own_effect and (name := one.name.lower()) in words
        )
        kind = "namespace" if each.type.lower() == "schema" else each.type.lower()
        path = client.objects.path(each.full_name, kind=each.type) if names else ""
        if not names or command.on_metalake or not _is_above(path, kind=kind, target=target):
            continue
        place = ["--on-metalake"] if kind == "metalake" else ["--on", path, "--kind", kind]
        correction = command.to_text(*names, *place, *(["--deny"] if command.deny else []), "--from", role.name)
        denial = "denies" if command.deny else "has"
        above.append(f"it {denial} {', '.join(names)} on {kind} {path}: '{correction}'")
    return "".join(f"; {each}" for each in above)


def _is_above(path: str, *, kind: str, target: str) -> bool:
    """Return whether an object contains the one at the path `target`."""
    if kind == "metalake":
        return True
    try:
        parts, below = display.parse(path), display.parse(target)
    except InvalidName:
        return False
    return len(parts) < len(below) and below[: len(parts)] == parts


def _readable(read: Callable[[], T]) -> T | None:
    """Read a holder's roles or privileges by `read`; None if the caller may change but not read them."""
    try:
        return read()
    except (DeniedError, NotFoundError):
        return None


def _rules_of(role: Role) -> set[tuple[str, str, str, str]]:
    return {
        (each.type, each.full_name, privilege.name.lower(), privilege.condition)
        for each in role.securable_objects
        for privilege in each.privileges
    }


def _with_missing(message: str, names: Sequence[str], *, missing: Sequence[str], holder: str) -> str:
    """Return the confirmation message of a revocation, extended by the roles or privileges that the holder did not
    have.
    """
    if not missing:
        return message
    text = f"{holder} did not have {', '.join(missing)}"
    return f"nothing was revoked: {text}" if len(missing) == len(names) else f"{message}; {text}"


def _roles_result(command: _GrantCommand, missing: Sequence[str]) -> tuple[str, dict[str, object]]:
    roles = list(command.names[1:])
    holder = f"group {command.group}" if command.group is not None else f"user {command.holder}"
    who = {"group": command.group} if command.group is not None else {"user": command.holder}
    done = "granted" if command.verb == "grant" else "revoked"
    result: dict[str, object] = {"roles": roles, **who, **({"missing": [*missing]} if missing else {})}
    message = f"{done} role {', '.join(each for each in roles if each not in missing)} {command.preposition} {holder}"
    return _with_missing(message, roles, missing=missing, holder=holder), result


def _privileges_result(
    command: _GrantCommand, privileges: Sequence[str], *, missing: Sequence[str], target: str, kind: str
) -> tuple[str, dict[str, object]]:
    done = "granted" if command.verb == "grant" else "revoked"
    changed_privileges = [each for each in privileges if each not in missing]
    what = f"{'denial of ' if command.deny else ''}{', '.join(changed_privileges)}"
    result: dict[str, object] = {
        "role": command.holder,
        "privileges": list(privileges),
        "condition": "deny" if command.deny else "allow",
        "object": target,
        "kind": kind,
    }
    if missing:
        result["missing"] = [*missing]
    message = f"{done} {what} on {kind} {target} {command.preposition} role {command.holder}"
    return _with_missing(message, privileges, missing=missing, holder=f"role {command.holder}"), result
