# SPDX-License-Identifier: Apache-2.0
"""`request access | list | withdraw | grant | decline`: ask for access to an object, and answer others' requests."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import App, Parameter

from limnos.cli.command_line import typed_tokens
from limnos.cli.common import DEFAULTS, CommonFlags, KindFlag
from limnos.cli.failures import StoppedError, UsageError
from limnos.cli.hints.typed_command import TypedCommand
from limnos.cli.lookups import objects_named, path_below_a_catalog
from limnos.cli.output import show_done, show_rows, visible
from limnos.cli.visible_paths import with_path
from limnos.client.errors import DeniedError, NotFoundError
from limnos.client.governance.access_requests import AccessRequest
from limnos.model.presets import PresetName
from limnos.names import display

if TYPE_CHECKING:
    from limnos.client import Client

_SHORTEST: Final = 4
"""The number of characters of an id with which a request can be named."""

app = App(name="request", help="Ask for access to objects, and answer the requests of others.")


_PARTS_OF_NAMESPACES: Final = 2
_PARTS_OF_OBJECTS: Final = 3
_KINDS_BY_TYPE: Final = {"model": "model", "fileset": "fileset", "messaging": "topic"}
"""The kind of the objects of a catalog, by its type; others have tables."""


@app.command
def access(
    path: str,
    /,
    *,
    preset: PresetName = "reader",
    reason: str = "",
    kind: KindFlag = None,
    common: CommonFlags = DEFAULTS,
) -> None:
    """Ask for access to an object. Who may grant it there sees the request; without an answer it ends after 30 days.

    You may ask for an object that you do not see. Your next request for the same object replaces this one.
    'limnos list requests --own' has the answer.

    Parameters
    ----------
    path
        The object, as `main.raw.nyc.flights`.
    preset
        What you need: `reader`, `writer` or `admin`.
    reason
        Why you need it, for those who answer: at most 500 characters, in one or more lines.
    """
    parts = display.parse(path)
    with common.client() as client:
        if kind is None and len(parts) == _PARTS_OF_NAMESPACES:
            _require_visible_catalog(client, path)
        object_kind = kind or _kind(client, path, count=len(parts))
        client.access_requests.create(path, kind=object_kind, preset=preset, reason=reason)
        if kind is None and len(parts) == 1:
            _note_other_objects(client, path)
    show_done(
        f"you asked for {preset} on {object_kind} {path}; who may grant it sees your request",
        {"requested": preset, "kind": object_kind, "path": path},
        output_format=common.output_format,
    )


def _require_visible_catalog(client: Client, path: str) -> None:
    """Check that a path of two parts begins with a catalog that the caller sees: more often the catalog is forgotten
    before a namespace and a table than a namespace of a hidden catalog is meant. Raises UsageError.
    """
    if display.parse(path)[0] in client.catalogs.names():
        return
    typed = TypedCommand(typed_tokens.get() or ("request", "access", path))
    near = path_below_a_catalog(display.parse(path))
    begins = f"'{typed.command('list')}' lists the catalogs: a path begins with one, as CATALOG.{path}"
    if near is not None:
        begins = f"a path begins with its catalog: did you mean {with_path(typed, near)}?"
    raise UsageError(
        f"you may know of no catalog '{display.parse(path)[0]}'",
        hint=f"{begins}; if {path} is a namespace in a catalog that you do not see:"
        f" '{typed.again('--kind', 'namespace')}'",
    )


def _note_other_objects(client: Client, path: str) -> None:
    """Note objects below catalogs whose own name was typed as a path, if the caller sees no catalog of that name."""
    if path in client.catalogs.names() or not (named := objects_named(path)):
        return
    withdraw = "'limnos list requests --own' has the id to withdraw this request"
    others = " or ".join(
        f"'{shlex.join(['limnos', 'request', 'access', display.render(each.path)])}'" for each in named
    )
    print(visible(f"note: you see no catalog {path}; if you meant {others}: {withdraw}"), file=sys.stderr)


def _kind(client: Client, path: str, *, count: int) -> str:
    """Return the kind of an object. Of one that the caller does not see, it is the kind of such a path by its length:
    `catalog`, `namespace`, or what a catalog of this type has, a table if the catalog is hidden, too.
    """
    try:
        objects = client.access.objects(path).objects
    except (NotFoundError, DeniedError):
        objects = ()
    if objects or count < _PARTS_OF_OBJECTS:
        return objects[0].kind if objects else ("catalog", "namespace")[count - 1]
    catalog = display.parse(path)[0]
    types = [each.type for each in client.catalogs.list() if each.name == catalog]  # a load would be audited as refused
    return _KINDS_BY_TYPE.get(types[0], "table") if types else "table"


@app.command(name="list")
def list_(
    *,
    own: Annotated[bool, Parameter(negative="", help="Your own requests, open and answered.")] = False,
    common: CommonFlags = DEFAULTS,
) -> None:
    """List the open requests that you may answer, the newest first.

    With `--own` your own requests: the open ones, and those that were granted or declined in the last 30 days.
    """
    with common.client() as client:
        requests = client.access_requests.own() if own else client.access_requests.list()
    rows = [_own_row(each) if own else _row(each) for each in requests]
    columns: tuple[str, ...] = ("id", "user", "preset", "path", "reason", "requested_at", "kind")
    if own:
        columns = (
            "id",
            "state",
            "preset",
            "path",
            "note",
            "answered_by",
            "requested_at",
            "answered_at",
            "reason",
            "kind",
        )
    empty = "you have no requests" if own else "no open requests that you may answer; your own: --own"
    show_rows(rows, columns, output_format=common.output_format, empty=empty)


def _row(request: AccessRequest) -> dict[str, object]:
    return {
        "id": request.id,
        "user": request.user,
        "preset": request.preset,
        "kind": request.kind,
        "path": display.render(request.path),
        "requested_at": request.requested_at,
        "reason": request.reason,
    }


def _own_row(request: AccessRequest) -> dict[str, object]:
    return {
        **_row(request),
        "state": request.state,
        "answered_by": request.answered_by,
        "answered_at": request.answered_at,
        "note": request.note,
    }


@app.command
def withdraw(request: str, /, *, common: CommonFlags = DEFAULTS) -> None:
    """Withdraw an open request of your own.

    Parameters
    ----------
    request
        The id of the request, or its beginning.
    """
    with common.client() as client:
        access_request = _one(client.access_requests.own(), request, lists="limnos list requests --own")
        client.access_requests.withdraw(access_request)
    show_done(
        f"withdrew your request for {access_request.preset} on {_object_text(access_request)}",
        {"withdrawn": access_request.id, "kind": access_request.kind, "path": display.render(access_request.path)},
        output_format=common.output_format,
    )


@app.command
def grant(request: str, /, *, common: CommonFlags = DEFAULTS) -> None:
    """Grant a request: the user gets the preset, and the request ends.

    Parameters
    ----------
    request
        The id of the request, or its beginning.
    """
    with common.client() as client:
        asked_for = _one(client.access_requests.list(), request, lists="limnos list requests")
        try:
            outcome = client.access_requests.grant(asked_for)
        except NotFoundError as error:
            raise _other_kind(client, asked_for) or error from error
    show_done(
        f"granted {asked_for.preset} on {display.render(asked_for.path)} to user {asked_for.user}, by the role"
        f" {outcome.role}",
        {"granted": asked_for.id, "user": asked_for.user, "preset": asked_for.preset, "role": outcome.role},
        output_format=common.output_format,
    )


def _other_kind(client: Client, request: AccessRequest) -> StoppedError | None:
    """Return the error for a request whose object has another kind than its user assumed, who did not see the object;
    None if there is no such object.
    """
    path = display.render(request.path)
    try:
        kinds = [each.kind for each in client.access.objects(path).objects if each.kind != request.kind]
    except (NotFoundError, DeniedError):
        return None
    if not kinds:
        return None
    grants = shlex.join(
        ["limnos", "grant", "--preset", request.preset, path, "--kind", kinds[0], "--to", f"user:{request.user}"]
    )
    return StoppedError(
        f"there is no {request.kind} {path}, but a {kinds[0]}, whose kind {request.user} did not see",
        code="not-found",
        hint=f"'{grants}', then 'limnos decline request {request.id}' ends the request",
    )


@app.command
def decline(
    request: str,
    /,
    *,
    note: Annotated[str, Parameter(help="A text for the user, of at most 500 characters.")] = "",
    common: CommonFlags = DEFAULTS,
) -> None:
    """Decline a request: the user gets nothing, and the request ends. The user sees the answer and your name.

    Parameters
    ----------
    request
        The id of the request, or its beginning.
    """
    with common.client() as client:
        asked_for = _one(client.access_requests.list(), request, lists="limnos list requests")
        outcome = client.access_requests.decline(asked_for, note=note)
    if not outcome.existed:
        raise StoppedError(
            "the request is not open any more: it was answered, withdrawn or too old",
            code="not-found",
            hint="'limnos list requests' lists the open ones",
        )
    show_done(
        f"declined the request of user {asked_for.user} for {asked_for.preset} on {_object_text(asked_for)}",
        {"declined": asked_for.id, "user": asked_for.user},
        output_format=common.output_format,
    )


def _object_text(request: AccessRequest) -> str:
    return f"{request.kind} {display.render(request.path)}"


def _one(requests: Sequence[AccessRequest], typed: str, *, lists: str) -> AccessRequest:
    """Return the open request whose id begins with what was typed; `lists` is the command that lists the requests.

    Raises UsageError for a text that is too short or the beginning of several ids, StoppedError if there is none, or
    if it was answered.
    """
    if len(typed) < _SHORTEST:
        text = f"'{typed}' is no id: at least {_SHORTEST} characters of one are needed"
        raise UsageError(text, hint=f"'{lists}' lists the ids")
    matches = [each for each in requests if each.id.startswith(typed.lower())]
    if len(matches) > 1:
        listed = ", ".join(each.id for each in matches[:5])
        raise UsageError(f"{len(matches)} requests begin with '{typed}': {listed}", hint="type more of the id")
    if not matches:
        whose = "of yours" if "--own" in lists else "that you may answer"
        raise StoppedError(
            f"no open request {whose} has the id '{typed}'", code="not-found", hint=f"'{lists}' lists them"
        )
    (match,) = matches
    if match.state != "open":
        raise StoppedError(
            f"the request {match.id} was {match.state} by {match.answered_by}",
            code="not-found",
            hint=f"'{lists}' has it",
        )
    return match
