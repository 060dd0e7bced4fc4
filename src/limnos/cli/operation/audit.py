# SPDX-License-Identifier: Apache-2.0
"""`audit`: shows and exports audit records."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from cyclopts import App, Parameter

from limnos.cli.common import DEFAULTS, CommonFlags
from limnos.cli.failures import UsageError
from limnos.cli.identity.principals import note_missing_user
from limnos.cli.operation.audit_relations import RelatedLines, grant_of, moved_id, read_lines, related_lines
from limnos.cli.output import Format, Row, TableOptions, show_done, show_rows, table_options
from limnos.client import ArgumentError, ClientError
from limnos.client.values import AuditLine
from limnos.model.audit import OTHER
from limnos.names import display
from limnos.names.errors import InvalidName

if TYPE_CHECKING:
    from limnos.client import Client

_LATE = 500
"""Refusals are recorded at once, reads in batches, and changes within half a minute. The server returns records in the
order of writing, so the latest ones are searched among so many more.
"""
_READS = frozenset({"read", "table_load", "table_read", "table_scan"})
_OF_SERVER = frozenset({"token", "login", "issue-token", "create-token", "revoke-token", "create-secret", "end-secret"})
"""Actions of the server, which no metalake's records have."""
_GRANTS = frozenset({"grant", "revoke", "give", "take", "role_assign", "privilege_grant"})
"""Actions whose records say first who received what."""
_GRANT_FIRST = ("at", "receiver", "privileges", "path", "user", "change")
_GROUPS_MAX = 3
"""The number of a user's groups whose records a note names."""
_DAYS_MAX = 36_500
_AGO = re.compile(r"([0-9]{1,6})([smhd])")
_WIRE = re.compile(r"[A-Z]+ /")
"""The beginning of the detail of a refusal that is its request, which the columns of operation and path say, too."""
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}

app = App(name="audit", default_parameter=Parameter(negative=""))


@dataclass(frozen=True, slots=True, kw_only=True)
class _AuditResult:
    """The records to show, newest first, and what notes about them need."""

    lines: list[AuditLine]
    related: RelatedLines
    former_id: int | str | None
    """The id of the object that had the requested path, if it has other names now."""
    hides_others: bool
    """Whether the records of other users are left out."""
    records_reads: bool
    groups: tuple[str, ...] = ()
    """The groups of the user whose access was requested, through which they were given more."""


@app.default
def audit(
    *,
    who: Annotated[str | None, Parameter(name=["--who", "--for"])] = None,
    what: Annotated[str | None, Parameter(name=["--what", "--path"])] = None,
    id: int | None = None,
    since: str | None = None,
    until: str | None = None,
    action: str | None = None,
    outcome: Literal["done", "refused", "failed"] | None = None,
    request: str | None = None,
    server: bool = False,
    limit: int = 50,
    common: CommonFlags = DEFAULTS,
) -> None:
    """Show audit records, newest first: user, action, object, and the right that allowed it.

    It shows all actions in metalakes that you own, elsewhere only your own.

    Parameters
    ----------
    who
        Only actions of this user.
    what
        Only actions on this path, as it was at the time, and below it: `main.raw`. Grants and restrictions count, and a
        rename of the object that is there now. With `--action access`, `grant`, `owner` or `restriction`, those of the
        objects above it count, too, and who was given a role with privileges there; of a user, group or role, also what
        they own and were granted.
    id
        Only actions on the object with this id, under all of its names. With those actions, the objects above its
        present path count, too.
    since
        From this time on: `2026-11-21T18:00:00Z`, a day, or `30m`, `12h`, `7d` ago.
    until
        Before this time, in the same formats.
    action
        Only this action (`table_create`), change (`drop`, `late`), operation (`load-table`), or a family: `access`,
        `grant`, `revoke`, `request`, `membership`, `restriction`, `owner`, `attachment`, `protection`, `read`,
        `change`, `token` (with sign-ins and passwords; of the server, so with `--server`).
    outcome
        Only actions with this outcome.
    request
        Only the request with this id.
    server
        Actions on the server and in all metalakes; only for service admins.
    limit
        The maximum number of lines.
    """
    if since is not None and since == until:
        raise UsageError(
            "nothing is between equal times: --until is the first time that is left out",
            hint="leave it out, or name the day after",
        )
    expected: dict[str, object] = {
        "user": who,
        "path": what and _path(what),
        "object_id": id,
        "since": _moment(since),
        "until": _moment(until),
        "action": action,
        "outcome": outcome,
        "request_id": request,
        "server": server,
    }
    with common.client() as client:
        result = _read_records(client, expected, who=who, what=what, limit=limit)
    if common.output_format == "table":
        for note in _notes(result, what=what, action=action, server=server):
            print(f"note: {note}", file=sys.stderr)
    if len(result.lines) > limit:
        earlier = "" if since is not None else ", or --since DAY,"
        print(f"note: the newest {limit} records; --limit NUMBER{earlier} shows others", file=sys.stderr)
    rows = [_row(line, common.output_format) for line in result.lines[:limit]]
    is_plain = common.output_format == "table" and table_options.get() == TableOptions()
    columns = _columns(rows, action=action, omits_path=what is not None and is_plain)
    show_rows(rows, columns, output_format=common.output_format, empty="no lines")


def _read_records(
    client: Client, expected: dict[str, object], *, who: str | None, what: str | None, limit: int
) -> _AuditResult:
    """Read the records with the expected values, one more than `limit` if there are more, and records related to
    them.
    """
    newest, page = read_lines(client, expected, limit=limit + 1)
    if len(newest) > limit:
        newest, page = read_lines(client, expected, limit=limit + 1 + _LATE)
    related = related_lines(client, what, expected=expected, own=newest)
    former_id = moved_id(client, related.moves, path=what, expected=expected) if expected["object_id"] is None else None
    note_missing_user(client, who, has_rows=bool(newest))
    lines = {line.id: line for line in (*newest, *related.moves, *related.above, *related.received)}
    lines |= {line.id: line for line in (*related.assigned, *related.of_role)}
    return _AuditResult(
        lines=sorted(lines.values(), key=lambda line: line.at, reverse=True),  # refusals are recorded before changes
        related=related,
        former_id=former_id,
        hides_others=page.own and (who is None or not _is_caller(client, user=who)),
        records_reads=page.records_reads,
        groups=_groups_of(client, what, lines=lines.values()) if expected["action"] == "access" else (),
    )


def _groups_of(client: Client, name: str | None, *, lines: Iterable[AuditLine]) -> tuple[str, ...]:
    """Return the groups of the user of a name; empty if none of the records is about that user."""
    if name is None or not any(
        line.object is not None and line.object.kind == "user" and line.object.path == _path(name) for line in lines
    ):
        return ()
    try:
        return tuple(client.users.groups(name))
    except (ClientError, ArgumentError):
        return ()


def _columns(rows: Sequence[Row], *, action: str | None, omits_path: bool) -> list[str]:
    """Return the columns: receiver and privileges first for grants. `omits_path`: leave out kind and path if all rows
    have the same.
    """
    columns = ["at", "user", "outcome", "did", "kind", "path", "detail", "right", "client", "request_id"]
    if action in _GRANTS:
        columns = [*_GRANT_FIRST, *(each for each in columns if each not in {*_GRANT_FIRST, "did", "detail"})]
    if omits_path and not any(" -> " in str(row["path"]) for row in rows):
        columns = [each for each in columns if each not in {"kind", "path"} or len({row[each] for row in rows}) > 1]
    return columns


def _number(lines: Sequence[AuditLine]) -> str:
    return "1 of them is" if len(lines) == 1 else f"{len(lines)} of them are"


def _notes(result: _AuditResult, *, what: str | None, action: str | None, server: bool) -> Iterator[str]:
    """Yield why records with another path than the requested one are shown, and what the records leave out: those of
    other users and of the server, and reads that are not recorded or have other names.
    """
    related = result.related
    if result.former_id is not None:
        yield f"it had other names: 'limnos audit --id {result.former_id}' has all"
    if related.above:
        counts = "counts" if len(related.above) == 1 else "count"
        yield f"{_number(related.above)} on objects above {related.present}, and {counts} for it"
    if related.assigned:
        yield f"{_number(related.assigned)} of who has, or had, a role with privileges on it or above it"
    if related.of_role:
        yield f"{_number(related.of_role)} of role {what}: what it was given, and who was given it"
    if related.received:
        yield f"{_number(related.received)} on objects that {what} owned or owns, or was granted by an own role"
    if result.groups:
        commands = ", ".join(
            f"'{shlex.join(['limnos', 'audit', '--path', each, '--action', 'access'])}'"
            for each in result.groups[:_GROUPS_MAX]
        )
        more = len(result.groups) - _GROUPS_MAX
        names = ", ".join(result.groups[:_GROUPS_MAX]) + (f" and {more} more" if more > 0 else "")
        yield f"{what} is in group{'s' if len(result.groups) > 1 else ''} {names}: {commands}"
    if action in _OF_SERVER and not server:
        yield "tokens and sign-ins belong to the server, not to a metalake: --server shows them to service admins"
    if result.hides_others:
        yield "your own actions; the owner of the metalake sees those of others"
    if action in _READS and not result.records_reads:
        yield (
            "reads by engines are not recorded, because the server's setting audit.reads is off; previews of rows are"
        )
    if action in {"privilege_grant", "role_assign"}:
        yield (
            "this action is the right that was used, and presets use both privilege_grant and role_assign: '--action"
            " grant' has who was given access, by presets too"
        )
    if action == "table_read":
        yield "restricted users have table_scan, loads table_load: '--action read' has all"


@app.command
def export(
    location: str | None = None,
    /,
    *,
    since: Annotated[
        str | None, Parameter(help="The first day, as 2026-11-01 or 7d ago; the default is the first recorded day.")
    ] = None,
    until: Annotated[str | None, Parameter(help="The day after the last one; the default is today.")] = None,
    common: CommonFlags = DEFAULTS,
) -> None:
    """Export complete days of the audit as Parquet files on the server. Only for service admins.

    Parameters
    ----------
    location
        The directory of the files, such as `s3://bucket/audit`, with a subdirectory per day; by default the setting
        audit.export.
    """
    since, until = _day(since, flag="--since"), _day(until, flag="--until")
    today = datetime.now(UTC).date().isoformat()
    prints = f"'limnos audit --since {today} --limit 10000 --output csv' prints its records"
    if since is not None and since >= today:
        raise UsageError(f"{since} is not complete yet, and complete days are exported", hint=prints)
    with common.client() as client:
        task = client.audit.export(location=location, since=since, until=until)
    if until is not None and until > today:
        print(f"note: {today} is exported when it is over; {prints}", file=sys.stderr)
    show_done(
        f"task {task} writes it: see 'limnos show task {task}'", {"task": task}, output_format=common.output_format
    )


def _day(text: str | None, *, flag: str) -> str | None:
    """Return a day of UTC as ISO 8601, from a day, `today`, `yesterday`, or an age in days such as `7d`; None without
    one. Raises UsageError for another form.
    """
    if text is None:
        return None
    age = {"today": "0", "yesterday": "1"}.get(text.lower(), text.removesuffix("d") if text.endswith("d") else "")
    if age.isdigit():
        return (datetime.now(UTC).date() - timedelta(days=min(int(age), _DAYS_MAX))).isoformat()
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise UsageError(f"{flag} takes a day, not '{text}'", hint="write 2026-11-01, or how long ago: 7d") from None


def _path(text: str) -> str:
    """Return a path in the form of records; a name that needs back-quotes and has none is quoted, such as `svc-etl`."""
    try:
        return display.render(display.parse(text))
    except InvalidName:
        return display.render(text.split("."))


def _is_caller(client: Client, *, user: str) -> bool:
    """Return whether a user is the caller; False if the server does not say."""
    try:
        return client.whoami() == user
    except ClientError:
        return False


def _row(line: AuditLine, output_format: Format) -> dict[str, object]:
    """Format an audit record: all fields for JSON, a selection that fits on a terminal line for a table, and both for
    `--columns`, which selects from either.
    """
    whole: dict[str, object] = msgspec.to_builtins(line)
    if output_format == "json" and not table_options.get().columns:
        return whole
    about, right = line.object, line.rights[0] if line.rights else {}
    path = "" if about is None else about.path
    selection: dict[str, object] = {
        "at": line.at,
        "user": line.user or "",
        "outcome": line.outcome,
        "did": (line.operation if line.change == OTHER else line.change) or line.operation or "",
        "kind": "" if about is None else about.kind,
        "path": f"{path} -> {line.new_path}" if line.new_path else path,
        "detail": ""
        if line.outcome == "refused" and line.rights and _WIRE.match(line.detail or "")
        else line.detail or "",
        "right": _right_sentence(right),
        **grant_of(line),
        "change": line.change or line.operation or "",
        "client": line.client or "",
        "request_id": line.request_id or "",
    }
    return whole | selection | {"detail": line.detail or ""} if table_options.get().columns else selection


def _right_sentence(right: object) -> str:
    """Return the clause of an explanation's sentence that names the privilege or ownership."""
    message = str(right.get("message", "")) if isinstance(right, dict) else ""
    return message.partition("': ")[2] or message


def _moment(text: str | None) -> str | None:
    """Parse an ISO 8601 time or an age such as `30m`, and return an ISO 8601 time. Raises UsageError for another
    form.
    """
    if text is None:
        return None
    if text.lower() in {"today", "yesterday"}:
        return _day(text, flag="--since")
    ago = _AGO.fullmatch(text)
    if ago is not None:
        return (datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})).isoformat()
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"'{text}' is not a time", hint="write 2026-11-21T18:00:00Z, 2026-11-21, or how long ago: 30m, 12h, 7d"
        ) from None
    return text
