# SPDX-License-Identifier: Apache-2.0
"""`grant --preset` and `revoke --preset`: all privileges that a reader, writer or admin of an object needs.

The server decides which privileges these are.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from limnos.cli.common import CommonFlags
from limnos.cli.failures import StoppedError
from limnos.cli.identity.comparisons import show_consequence
from limnos.cli.identity.principals import Holder, find_holder
from limnos.cli.output import show_done
from limnos.client.errors import NotFoundError
from limnos.client.identity.access import PresetGrant, PresetOutcome
from limnos.model.presets import PresetName

if TYPE_CHECKING:
    from limnos.client import Client


@dataclass(frozen=True, slots=True, kw_only=True)
class PresetCommand:
    """A command about a preset as typed. `holder` names a user, group or role; `path` is None for the metalake."""

    verb: str
    preset: PresetName
    path: str | None
    kind: str | None
    holder: str
    is_question: bool


def change_preset(command: PresetCommand, common: CommonFlags) -> None:
    """Grant or revoke a preset, or show what that would change, and print the result."""
    with common.client() as client:
        holder = find_holder(client, command.holder)
        kind = "metalake" if command.path is None else command.kind or client.objects.kind(command.path)
        if command.is_question:
            consequence = client.access.what_if_preset(
                command.preset,
                command.path or (),
                kind=kind,
                grants=command.verb == "grant",
                **_holder_arguments(holder),
            )
            show_consequence(consequence, output_format=common.output_format)
            return
        outcome = _change(client, command, holder=holder, kind=kind)
    where = f"{kind} {command.path or common.metalake}"
    result = {
        "preset": command.preset,
        "object": command.path or common.metalake,
        "kind": kind,
        holder.kind: holder.name,
        **msgspec.to_builtins(outcome),
    }
    show_done(_message(command, outcome, holder=holder, where=where), result, output_format=common.output_format)


def _holder_arguments(holder: Holder) -> dict[str, str | None]:
    """Return the arguments `user`, `group` and `role` of calls that take one of them."""
    return {kind: holder.argument(kind) for kind in ("user", "group", "role")}


def _change(client: Client, command: PresetCommand, *, holder: Holder, kind: str) -> PresetOutcome:
    change = client.access.grant_preset if command.verb == "grant" else client.access.revoke_preset
    try:
        return change(
            command.preset,
            command.path or (),
            kind=kind,
            **_holder_arguments(holder),
        )
    except NotFoundError as error:
        own_role = f"{holder.kind}:{holder.name}"
        if command.verb == "grant" or not error.message.startswith(f"Role {own_role} does not exist"):
            raise
        shows = (
            ["limnos", "access", "what", holder.name]
            if holder.kind == "user"
            else ["limnos", "show", "group", holder.name]
        )
        raise StoppedError(
            f"{holder.kind} {holder.name} was granted no preset: there is no role {own_role}",
            code="not-found",
            hint=f"'{shlex.join(shows)}' shows what there is",
        ) from error


def _message(command: PresetCommand, outcome: PresetOutcome, *, holder: Holder, where: str) -> str:
    is_grant = command.verb == "grant"
    done, preposition = ("granted", "to") if is_grant else ("revoked", "from")
    lines = [f"{done} {command.preset} on {where} {preposition} {holder}"]
    if holder.kind != "role":
        lines[0] += f", by {'the new role' if outcome.created else 'the role'} {outcome.role}"
    lines += [f"  {done} {_grant_text(each)}" for each in outcome.changed]
    if not outcome.changed:
        lines[0] = f"nothing to {command.verb}: role {outcome.role} has {'all' if is_grant else 'none'} of it"
    if not is_grant:
        lines += [f"  kept {_grant_text(each)}, which other grants of the role need" for each in outcome.unchanged]
    return "\n".join(lines)


def _grant_text(grant: PresetGrant) -> str:
    return f"{grant.privilege} on {grant.object.kind} {grant.object.name}"
