# SPDX-License-Identifier: Apache-2.0
"""Hints for refused calls: who may grant the missing right, and how to ask for it."""

from __future__ import annotations

import re

from limnos.cli.hints.typed_command import TypedCommand, path_parts
from limnos.cli.lookups import (
    AccessOffer,
    access_offer,
    has_children,
    has_role_with_access,
    other_metalake,
    owner_above,
)
from limnos.cli.output import flag_values
from limnos.cli.token_words import without_flag
from limnos.client.errors import DeniedError
from limnos.model.restrictions import CLOSED_TO

_DECISION = re.compile(r"perform operation '(\w+)' on metadata '(.+?)': ", re.DOTALL)
"""The position of the decision in an error message of Iceberg REST, which has no separate field for it."""
_NOT_A_MEMBER = re.compile(r"Current user (\S+) doesn't exist in the metalake (\S+?),")
"""The message for a user who is not a member of the metalake."""
_IN_METALAKE = frozenset(
    {"user_list", "user_manage", "group_list", "group_manage", "role_list", "role_create", "role_assign"}
)
"""Actions on the metalake. With a name, `access explain` would apply them to a user, group or role."""


def denied_hint(error: DeniedError, typed: TypedCommand) -> str:
    """Return the command that shows the missing right, and the one that asks for it if a preset has it."""
    action, kind, target = _decision_parts(error)
    if not_a_member := _NOT_A_MEMBER.match(error.message):
        creates = typed.command("create", "metalake", not_a_member[2])
        other = other_metalake(not_a_member[2], typed.spell("list", "metalakes"), creates_command=creates)
        if other is not None:
            return other
        create_command = typed.spell("create", "user", not_a_member[1], "--metalake", not_a_member[2])
        return f"an admin of the metalake adds you with '{create_command}'"
    if not action:
        return f"'{typed.command('whoami')}' shows who you are"
    whole = kind in {"metalake", "server"} or action in _IN_METALAKE
    words = ["access", "explain", action, *([] if whole or not target else [target])]
    words += ["--kind", kind] if kind and not whole else []
    shows = f"'{typed.command(*words)}' shows what is missing"
    if CLOSED_TO in error.message:
        reads = typed.command("head", target or "PATH")
        return f"restricted users may only read the table's rows: '{reads}' shows those that are left to you"
    if (instead := _of_grants(action, target, typed=typed)) is not None:
        return f"{instead}; {shows}"
    lists = ""
    if typed.words[:1] == ("show",) and not whole and has_children(target):
        lists = f"'{typed.command('list', target)}' lists what you may see in it; "
    offer = None if whole else access_offer(action, kind=kind, path=target)
    if offer is not None:
        return f"{lists}{_ask(offer, typed)}; {shows}"
    if kind == "metalake" and target:
        return f"'{typed.command('show', 'owner', target, '--kind', kind)}' names who may grant it; {shows}"
    owned = None if whole or not target else owner_above(target)
    owner = "" if owned is None else f"{owned.path} is owned by {owned.owner}, who may do or grant it; "
    return f"{lists}{owner}{shows}"


def _of_grants(action: str, target: str, *, typed: TypedCommand) -> str | None:
    """Return the advice for a user who may grant on an object and not above it; None for other refusals.

    A preset for a user makes a role, which takes a right on the metalake. The grant of a request does not.
    """
    path = next((word for word in typed.words[1:] if len(path_parts(word)) > 1), "PATH")
    if action == "role_assign" and typed.words[:1] == ("grant",) and "--preset" in typed.tokens:
        words = ["request", "access", path]
        for flag, default in (("--preset", "reader"), ("--kind", "")):
            value = next(iter(flag_values(typed.tokens, flag)), default)
            words += [flag, value] if value != default else []
        return (
            f"{_to_role(path, typed)}; or the user who needs it types '{typed.spell(*words)}' and you answer with"
            " 'limnos request grant ID'"
        )
    if action == "privilege_grant" and typed.words[:2] == ("request", "grant"):
        return (
            f"the preset also needs a privilege on {target}, above the object that you own: have a user who may grant"
            f" there type '{typed.spell(*typed.words)}'; the request stays open"
        )
    return None


def _to_role(path: str, typed: TypedCommand) -> str:
    """Return the command that grants a preset to the role that a user or group got by an earlier preset: that takes no
    right on the metalake.
    """
    values = [
        *flag_values(typed.tokens, "--to"),
        *(f"group:{name}" for name in flag_values(typed.tokens, "--to-group")),
    ]
    kind, _, name = next(iter(values), "").partition(":")
    if kind not in {"user", "group"} or not name:
        return f"you may grant on {path}, to a role that exists: --to role:ROLE"
    role = f"{kind}:{name}"
    again = without_flag(without_flag(typed.tokens, "--to"), "--to-group")
    command = TypedCommand(again).again("--to", f"role:{role}")
    if has_role_with_access(role, path):
        return f"you may grant on {path}: '{command}' grants to the role that {kind} {name} has already"
    return f"you may grant on {path}: if {kind} {name} was granted a preset before, '{command}' grants to that role"


def _ask(offer: AccessOffer, typed: TypedCommand) -> str:
    """Return the command that asks for access, and of whom."""
    words = ["request", "access", offer.path]
    words += ["--preset", offer.preset] if offer.preset != "reader" else []
    words += ["--kind", offer.kind] if offer.kind not in {"table", "catalog"} else []
    owner = f" ({offer.owned} is owned by {offer.owner})" if offer.owner else ""
    asks = f"'{typed.command(*words)}' asks for access{owner}"
    return asks if offer.owned == offer.path else f"{asks}, if you were told that it exists"


def _decision_parts(error: DeniedError) -> tuple[str, str, str]:
    """Return the action of a refusal, the kind of its target, and the target; empty strings if they are unknown."""
    decision = error.decision
    if decision is not None and decision.action:
        kind = getattr(decision.target, "kind", "")
        return decision.action, kind, decision.target_name
    match = _DECISION.search(error.message)
    return (match[1], "", match[2]) if match else ("", "", "")
