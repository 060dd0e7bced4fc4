# SPDX-License-Identifier: Apache-2.0
"""`access explain | who | what | diff | simulate`: the reasons of an access decision, the users with access to an
object, the objects that a user has access to, differences between users, and effects of changes.

The server decides; this module formats the answers.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Final, Literal, cast

import msgspec
from cyclopts import App, Parameter

from limnos.cli.common import DEFAULTS, CommonFlags, ExplainedKind, KindFlag
from limnos.cli.failures import ExitCode, UsageError
from limnos.cli.hints.explained_words import ordered_words
from limnos.cli.identity.comparisons import (
    DiffQuestion,
    MissingQuestion,
    show_differences,
    show_missing,
    show_note,
)
from limnos.cli.identity.principals import user_of
from limnos.cli.lookups import preset_of
from limnos.cli.output import Row, show_done, show_rows, visible
from limnos.client.errors import DeniedError, NotFoundError
from limnos.client.identity.access import AccessHolder
from limnos.client.values import Decision, Explanation
from limnos.model.presets import PresetName
from limnos.names import display

if TYPE_CHECKING:
    from limnos.client import Client

app = App(name="access")
_SHOWN_OF: Final = {"group": "its roles, and 'limnos show role ROLE' their rights", "role": "the role's rights"}
"""The fields of a group and of a role that `show` prints."""
_MISSING: Final = re.compile(r"There is no ([a-z ]+?) (.+?)(?: in this metalake)?: check the spelling")
"""The server's note about a path or user that does not exist."""
ContainerKind = Literal["metalake", "catalog", "namespace"]
CountsFlag = Annotated[bool, Parameter(name="--counts", help="Only numbers by level and kind.", negative=())]
AtFlag = Annotated[str | None, Parameter(name="--at", help="The object, as `main.raw`; by default the metalake.")]


@app.command
def explain(
    action: str | None = None,
    path: str | None = None,
    /,
    *,
    for_: Annotated[str | None, Parameter(name="--for")] = None,
    kind: ExplainedKind | None = None,
    through: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    actions: Annotated[bool, Parameter(name="--actions", negative=())] = False,
    common: CommonFlags = DEFAULTS,
) -> int:
    """Explain whether an action is allowed: the roles, ownerships and denials that determine it. The action is not
    performed.

    Exit code 0 if it is allowed, 7 if it is denied or restricted to a part of the rows. `--actions` lists the actions.

    Parameters
    ----------
    action
        The action, such as `table_load`, `table_commit` or `namespace_create`.
    path
        Its object, such as `main.raw.nyc.flights`, or the name of a role or user; by default the metalake.
    for_
        Another user; needs the privilege to manage grants.
    kind
        Kind of PATH, if it is ambiguous.
    through
        A view through which the table is read, as main.raw.late; may be repeated, the outermost first.
    actions
        List all actions instead.
    """
    if actions:
        _list_actions(common)
        return int(ExitCode.OK)
    if action is None:
        raise UsageError("name the action to explain", hint="'limnos access explain --actions'")
    if path is None and is_path(action):
        example = shlex.join(["limnos", "access", "explain", "table_read", action])
        raise UsageError(
            f"the action is missing before '{action}'",
            hint=f"'{example}', or another action: 'limnos access explain --actions' lists them",
        )
    if path is not None and (ordered := ordered_words([action, path])) is not None:
        user = ["--for", for_] if for_ and "--for" not in ordered.command else []
        raise UsageError(ordered.message, hint=f"'{shlex.join(['limnos', *ordered.command, *user])}'")
    for_ = user_of(for_, instead=["access", "who", path or "PATH", "--action", action])
    with common.client() as client:
        explanation = client.access.explain(action, path or (), user=for_, kind=kind, through=through)
    if path is not None and explanation.decision.allowed:
        _require_object(explanation.suggestions)
    elif for_ is not None and any(each.kind == "member" for each in explanation.decision.factors):
        raise _missing_user(for_)
    if common.output_format == "json":
        show_done("", _document(explanation), output_format="json")
    else:
        changes = _changing_commands(explanation.decision, user=for_ or explanation.decision.user)
        grants = _preset_grant(explanation.decision, path, user=for_)
        asks = None if for_ else _request_of(explanation.decision, path)
        _print(explanation, grants=grants, changes=changes, asks=asks, is_own=for_ is None)
    return int(ExitCode.OK if explanation.decision.allowed else ExitCode.REFUSED)


def _require_object(notes: Sequence[str]) -> None:
    """Raise NotFoundError if a note of the server says that an object or a user does not exist: an answer about it
    would be taken for one about an object of a similar name.
    """
    for each in notes:
        if (missing := _MISSING.match(each)) is not None:
            kind, name = missing[1], missing[2]
            if kind == "user":
                raise _missing_user(name)
            raise NotFoundError(f"{kind.capitalize()} does not exist: {name}", status=404, code="not-found")


def _missing_user(name: str) -> NotFoundError:
    return NotFoundError(f"User {name} does not exist in this metalake", status=404, code="not-found")


def is_path(word: str) -> bool:
    """Return whether a word can only be a path: actions have no dot, names of users mostly an @ then."""
    return "." in word.strip(".") and "@" not in word


@app.command
def holders(
    path: str | None = None,
    /,
    *,
    action: Annotated[str | None, Parameter(help="One action instead of all levels, as `table_load`.")] = None,
    kind: Annotated[ExplainedKind | None, Parameter(help="Kind of PATH, if it is ambiguous.")] = None,
    common: CommonFlags = DEFAULTS,
) -> None:
    """List the users with access to an object: their access levels, and the role or ownership that grants each level.

    The levels are read, write, create, drop and grant. You need the right to grant on the object.

    Parameters
    ----------
    path
        The object, such as `main.raw.nyc.flights`; by default the metalake.
    """
    rows: list[Row] = []
    after: str | None = None
    with common.client() as client:
        while True:
            page = client.access.holders(path or (), kind=kind, action=action, after=after, limit=1_000)
            rows += [_holder_row(each) for each in page.holders]
            after = page.after
            if after is None:
                break
    _require_object(page.notes)
    for each in page.notes:
        show_note(each)
    if not page.enforced:
        show_note("access control is off: every request is allowed")
    show_rows(
        rows, ["user", "may", "through", "restricted"], output_format=common.output_format, empty="no user has access"
    )


def _holder_row(holder: AccessHolder) -> Row:
    through = dict.fromkeys(
        factor.role or f"{factor.kind} of {factor.object_name}"
        for factors in holder.may.values()
        for factor in factors
        if factor.role or factor.kind == "owner"
    )
    return {
        "user": holder.user if holder.enabled else f"{holder.user} (disabled)",
        "may": ", ".join(holder.may),
        "through": ", ".join(through),
        "restricted": ", ".join(each.name for each in holder.restrictions),
    }


@app.command
def reach(
    path: str | None = None,
    /,
    *,
    for_: Annotated[
        str | None, Parameter(name="--for", help="Another user; needs the privilege to manage grants.")
    ] = None,
    kind: Annotated[ContainerKind | None, Parameter(help="What PATH is.")] = None,
    counts: CountsFlag = False,
    common: CommonFlags = DEFAULTS,
) -> None:
    """List the objects that you, or another user, may read, write, create in, drop or grant on.

    Parameters
    ----------
    path
        A catalog or namespace, such as `main.raw`; by default the metalake.
    """
    rows: list[Row] = []
    after: str | None = None
    with common.client() as client:
        while True:
            page = client.access.reach(path or (), user=for_, kind=kind, after=after, limit=1 if counts else 1_000)
            rows += [
                {
                    "path": display.render(each.path) or common.metalake,
                    "kind": each.kind,
                    "may": ", ".join(each.may),
                    "restricted": each.restricted,
                }
                for each in page.objects
            ]
            after = page.after
            if after is None or counts:
                break
    if counts:
        rows = [
            {"level": level, "kind": kind, "objects": count}
            for level, by_kind in page.counts.items()
            for kind, count in by_kind.items()
        ]
    _require_object(page.notes)
    for each in page.notes:
        show_note(each)
    if page.bounded:
        show_note(f"only the first {page.looked} objects were checked: name a catalog or namespace")
    if page.hidden:
        show_note(f"{page.hidden} objects are counted only: you may not see them")
    columns = ["level", "kind", "objects"] if counts else ["path", "kind", "may", "restricted"]
    show_rows(rows, columns, output_format=common.output_format, empty="no action is allowed there")


@app.command
def who(
    path: str | None = None,
    /,
    *,
    action: Annotated[str | None, Parameter(help="One action instead of all levels, as `table_load`.")] = None,
    kind: Annotated[ExplainedKind | None, Parameter(help="Kind of PATH, if it is ambiguous.")] = None,
    common: CommonFlags = DEFAULTS,
) -> None:
    """List the users with access to an object, as `access holders`. You need the right to grant on the object.

    Parameters
    ----------
    path
        The object, such as `main.raw.nyc.flights`; by default the metalake.
    """
    holders(path, action=action, kind=kind, common=common)


@app.command
def what(
    user: str,
    /,
    at: AtFlag = None,
    *,
    missing: Annotated[
        PresetName | None, Parameter(help="Show what the user lacks for this preset, and the command that grants it.")
    ] = None,
    counts: CountsFlag = False,
    kind: KindFlag = None,
    common: CommonFlags = DEFAULTS,
) -> None:
    """List the objects that a user may read, write, create in, drop or grant on. For other users it needs the privilege
    to manage grants.

    `limnos access what ana main.raw` · `limnos access what ana main.raw.nyc --missing writer`

    Parameters
    ----------
    user
        The user, such as `ana`.
    """
    if missing is None and kind not in {None, "metalake", "catalog", "namespace"}:
        raise UsageError(f"a {kind} contains nothing: --kind is for catalogs and namespaces, or goes with --missing")
    try:
        if missing is not None:
            show_missing(MissingQuestion(user, missing, at, kind), common)
        else:
            reach(at, for_=user, kind=cast("ContainerKind | None", kind), counts=counts, common=common)
    except NotFoundError as error:
        if at is None and is_path(user):  # names of users may have dots, too
            users, own = (
                f"'{shlex.join(['limnos', 'access', *words])}'" for words in (("who", user), ("what", "USER", user))
            )
            raise UsageError(
                f"there is no user '{user}': it is a path, and 'access what' takes a user",
                hint=f"{users} lists its users, {own} what one of them may do there",
            ) from None
        with common.client() as client:
            _refuse_other_holder(client, user)
        raise error from None


def _refuse_other_holder(client: Client, name: str) -> None:
    """Raise UsageError if a name is that of a group or a role instead of a user."""
    reads: tuple[tuple[str, Callable[[str], object]], ...] = (("group", client.groups.get), ("role", client.roles.get))
    for kind, read in reads:
        with suppress(NotFoundError, DeniedError):
            read(name)
            shows = shlex.join(["limnos", "show", kind, name])
            raise UsageError(
                f"'{name}' is a {kind}, and 'access what' takes a user", hint=f"'{shows}' shows {_SHOWN_OF[kind]}"
            )


@app.command
def diff(user: str, other: str, /, *, at: AtFlag = None, kind: KindFlag = None, common: CommonFlags = DEFAULTS) -> None:
    """List the objects on which two users differ: what each may do there, and the other may not. Needs the privilege
    to manage grants.

    The levels are read, write, create, drop and grant; other words are actions. `--output json` has all actions.

    Parameters
    ----------
    user
        The user, such as `ana`.
    other
        The user to compare with.
    """
    show_differences(DiffQuestion(user, other, at, kind), common)


@app.command
def simulate(
    change: Literal["grant", "revoke"],
    /,
    *what: str,
    preset: Annotated[PresetName | None, Parameter(help="A preset, instead of privileges.")] = None,
    to: Annotated[
        str | None, Parameter(name=("--to", "--from"), help="Who gets or loses it: `user:ana`, `role:r`.")
    ] = None,
    to_group: Annotated[
        str | None, Parameter(name=("--to-group", "--from-group"), help="The group that gets or loses the role.")
    ] = None,
    on: Annotated[str | None, Parameter(help="The object of privileges, as `main.raw.nyc`.")] = None,
    on_metalake: Annotated[
        bool, Parameter(negative="", help="The metalake itself instead of an object in it.")
    ] = False,
    kind: KindFlag = None,
    deny: Annotated[bool, Parameter(negative="", help="A denial instead of a grant.")] = False,
    common: CommonFlags = DEFAULTS,
) -> None:
    """Show which users would gain or lose access by a grant or revoke, and change nothing. The words and options are
    those of `grant` and `revoke`, which have `--what-if`, too.

    `limnos access simulate grant --preset writer main.raw --to user:ana` · `limnos access simulate revoke role analyst
    --from ana`

    Parameters
    ----------
    change
        The change.
    what
        With `--preset` the object; `role` and the names of roles; or privileges, as `select_table`.
    """
    from limnos.cli.identity import grants

    if change == "grant":
        grants.grant(
            *what,
            preset=preset,
            to=to,
            to_group=to_group,
            on=on,
            on_metalake=on_metalake,
            kind=kind,
            deny=deny,
            what_if=True,
            common=common,
        )
    else:
        grants.revoke(
            *what,
            preset=preset,
            from_=to,
            from_group=to_group,
            on=on,
            on_metalake=on_metalake,
            kind=kind,
            deny=deny,
            what_if=True,
            common=common,
        )


def _list_actions(common: CommonFlags) -> None:
    from limnos.access.actions import Action

    rows: list[Row] = [
        {"action": action.word, "kinds": ", ".join(kind.word for kind in sorted(action.kinds))} for action in Action
    ]
    show_rows(rows, ["action", "kinds"], output_format=common.output_format)


def _document(explanation: Explanation) -> Row:
    decision = msgspec.to_builtins(explanation.decision)
    factors = [_factor_row(explanation.decision, index) for index in range(len(explanation.decision.factors))]
    decision |= {
        "verdict": _verdict(explanation.decision).lower(),
        "target": explanation.decision.target_name,
        "message": explanation.decision.sentence,
        "factors": factors,
    }
    return {"decision": decision, "suggestions": explanation.suggestions}


def _verdict(decision: Decision) -> str:
    """Return `RESTRICTED` if nothing but read restrictions prevents the action."""
    if decision.allowed:
        return "ALLOWED"
    kinds = {factor.kind for factor in decision.factors}
    return "RESTRICTED" if "restricted" in kinds and not kinds & {"missing", "deny", "member"} else "REFUSED"


def _factor_row(decision: Decision, index: int) -> Row:
    factor = decision.factors[index]
    return {
        "kind": factor.kind,
        "privilege": factor.privilege,
        "object": factor.object_name or None,
        "role": factor.role,
        "group": factor.group,
    }


def _is_alternative(decision: Decision, index: int) -> bool:
    """Return whether a missing right is another one for the one in the row above: either is enough."""
    factor, above = decision.factors[index], decision.factors[index - 1]
    return index > 0 and factor.kind == above.kind == "missing" and factor.clause == above.clause


def _preset_grant(decision: Decision, path: str | None, *, user: str | None) -> str | None:
    """Return the command that grants all that a refused user lacks; None if no preset has it."""
    preset = None if decision.allowed or path is None else preset_of(decision.factors)
    if preset is None or path is None:
        return None
    holder = f"user:{user or decision.user or 'NAME'}"
    return shlex.join(["limnos", "grant", "--preset", preset, path, "--to", holder])


def _request_of(decision: Decision, path: str | None) -> str | None:
    """Return the command by which refused users ask for all that they lack; None if no preset has it."""
    preset = None if decision.allowed or path is None else preset_of(decision.factors)
    if preset is None or path is None:
        return None
    kind = getattr(decision.target, "kind", "")
    words = ["limnos", "request", "access", path, *(["--preset", preset] if preset != "reader" else [])]
    return shlex.join([*words, *(["--kind", kind] if kind and kind not in {"table", "catalog"} else [])])


def _changing_commands(decision: Decision, *, user: str | None) -> list[str]:
    """Return the commands that change what no preset does: a missing ownership, a denial, and a restriction."""
    commands: list[str] = []
    grantable = {
        each.clause for each in decision.factors if each.kind == "missing" and each.privilege not in {None, "OWNER"}
    }
    for each in () if decision.allowed else decision.factors:
        name, kind = each.object_name, getattr(each.object, "kind", "")
        place = ["--on-metalake"] if kind == "metalake" else ["--on", name, "--kind", kind]
        if each.kind == "missing" and each.privilege == "OWNER" and each.clause not in grantable and name:
            words = ["limnos", "set", "owner", name, user or "USER", "--kind", kind]
        elif each.kind == "deny" and each.role and each.privilege:
            words = ["limnos", "revoke", each.privilege.lower(), "--deny", *place, "--from", f"role:{each.role}"]
        elif each.kind == "restricted" and each.privilege and name:
            words = ["limnos", "set", "restriction", each.privilege, name, "--except", f"user:{user or 'USER'}"]
            commands.append(f"'{shlex.join(words)}' answers with the command that keeps its terms")
            continue
        else:
            continue
        commands.append(f"'{shlex.join(words)}'")
    return list(dict.fromkeys(commands))


def _print(
    explanation: Explanation, *, grants: str | None, changes: Sequence[str], asks: str | None, is_own: bool
) -> None:
    """Print an explanation. `grants` and `changes` are commands for a user who may grant: of an explanation of the
    caller's own access, the caller can only ask for it, with `asks`.
    """
    decision = explanation.decision
    print(visible(f"{_verdict(decision)}: {decision.sentence or decision.action}"))
    if decision.factors:
        print()
        rows = [
            {**_factor_row(decision, index), "kind": "or" if _is_alternative(decision, index) else factor.kind}
            for index, factor in enumerate(decision.factors)
        ]
        show_rows(rows, ["kind", "privilege", "object", "role", "group"], output_format="table")
    if explanation.suggestions:
        by = ", by a user who may grant it" if is_own else ""
        print("\nnote:" if decision.allowed else f"\nwhat would change it{by}:")
        for suggestion in explanation.suggestions:
            print(visible(f"  {suggestion}"))
        for command in changes:
            print(visible(f"  {command}"))
        if grants is not None:
            print(visible(f"  All of it: '{grants}'"))
        if asks is not None:
            print(visible(f"  You may ask for it: '{asks}'"))
