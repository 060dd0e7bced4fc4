# SPDX-License-Identifier: Apache-2.0
"""`request access | list | grant | decline`: ask for access to an object, and answer the requests of others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import App, Parameter

from limnos.cli.common import DEFAULTS, CommonFlags, KindFlag
from limnos.cli.failures import StoppedError, UsageError
from limnos.cli.output import show_done, show_rows
from limnos.client.errors import DeniedError, NotFoundError
from limnos.client.governance.access_requests import AccessRequest
from limnos.model.presets import PresetName
from limnos.names import display

if TYPE_CHECKING:
    from limnos.client import Client

_SHORTEST: Final = 4
"""The number of characters of an id with which a request can be named."""

app = App(name="request", help="Ask for access to objects, and answer the requests of others.")


@app.command
def access(
    path: str, /, *, preset: PresetName = "reader", kind: KindFlag = None, common: CommonFlags = DEFAULTS
) -> None:
    """Ask for access to an object. Who may grant it there sees the request; without an answer it ends after 30 days.

    You may ask for an object that you do not see. Your next request for the same object replaces this one.

    Parameters
    ----------
    path
        The object, as `main.raw.nyc.flights`.
    preset
        What you need: `reader`, `writer` or `admin`.
    """
    parts = display.parse(path)
    with common.client() as client:
        named = kind or _kind(client, path, count=len(parts))
        client.access_requests.create(path, kind=named, preset=preset)
    show_done(
        f"you asked for {preset} on {named} {path}; who may grant it sees your request",
        {"requested": preset, "kind": named, "path": path},
        output_format=common.output_format,
    )


def _kind(client: Client, path: str, *, count: int) -> str:
    """Return the kind of an object. Of one that the caller does not see, it is the kind of such a path by its length:
    `catalog`, `namespace` or `table`.
    """
    try:
        known = client.access.objects(path).objects
    except (NotFoundError, DeniedError):
        known = ()
    return known[0].kind if known else ("catalog", "namespace", "table")[min(count, 3) - 1]


@app.command(name="list")
def list_(
    *,
    own: Annotated[bool, Parameter(negative="", help="Your own requests, which wait for an answer.")] = False,
    common: CommonFlags = DEFAULTS,
) -> None:
    """List the open requests that you may answer, the newest first."""
    with common.client() as client:
        requests = client.access_requests.own() if own else client.access_requests.list()
    rows = [
        {
            "id": each.id,
            "user": each.user,
            "preset": each.preset,
            "kind": each.kind,
            "path": display.render(each.path),
            "requested_at": each.requested_at,
        }
        for each in requests
    ]
    columns = ("id", "user", "preset", "path", "requested_at", "kind")
    show_rows(rows, columns, output_format=common.output_format, empty="no open requests")


@app.command
def grant(request: str, /, *, common: CommonFlags = DEFAULTS) -> None:
    """Grant a request: the user gets the preset, and the request ends.

    Parameters
    ----------
    request
        The id of the request, or its beginning.
    """
    with common.client() as client:
        asked_for = _request(client, request)
        outcome = client.access_requests.grant(asked_for)
    where = f"{asked_for.kind} {display.render(asked_for.path)}"
    show_done(
        f"granted {asked_for.preset} on {where} to user {asked_for.user}, by the role {outcome.role}",
        {"granted": asked_for.id, "user": asked_for.user, "preset": asked_for.preset, "role": outcome.role},
        output_format=common.output_format,
    )


@app.command
def decline(request: str, /, *, common: CommonFlags = DEFAULTS) -> None:
    """Decline a request: the user gets nothing, and the request ends.

    Parameters
    ----------
    request
        The id of the request, or its beginning.
    """
    with common.client() as client:
        asked_for = _request(client, request)
        client.access_requests.decline(asked_for)
    where = f"{asked_for.kind} {display.render(asked_for.path)}"
    show_done(
        f"declined the request of user {asked_for.user} for {asked_for.preset} on {where}",
        {"declined": asked_for.id, "user": asked_for.user},
        output_format=common.output_format,
    )


def _request(client: Client, typed: str) -> AccessRequest:
    """Return the request whose id begins with what was typed.

    Raises UsageError for a text that is too short or the beginning of several ids, StoppedError if there is none.
    """
    if len(typed) < _SHORTEST:
        raise UsageError(f"'{typed}' is too short for an id", hint="'limnos list requests' lists the ids")
    matches = [each for each in client.access_requests.list() if each.id.startswith(typed.lower())]
    if len(matches) > 1:
        listed = ", ".join(each.id for each in matches[:5])
        raise UsageError(f"{len(matches)} requests begin with '{typed}': {listed}", hint="type more of the id")
    if not matches:
        text = f"no open request that you may answer has the id '{typed}'"
        raise StoppedError(text, code="not-found", hint="'limnos list requests' lists them")
    return matches[0]
