# SPDX-License-Identifier: Apache-2.0
"""`audit`: shows and exports audit records."""

from __future__ import annotations

import re
import sys
from collections.abc import Container, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from cyclopts import App, Parameter

from limnos.cli.common import DEFAULTS, CommonFlags
from limnos.cli.failures import UsageError
from limnos.cli.output import Format, Row, TableOptions, show_done, show_rows, table_options
from limnos.client import ClientError
from limnos.client.errors import NotFoundError
from limnos.client.values import AuditLine, AuditPage
from limnos.model.audit import OTHER
from limnos.names import display
from limnos.names.errors import InvalidName

if TYPE_CHECKING:
    from limnos.client import Client

PAGE = 1000
_LATE = 500
"""Refusals are recorded at once, reads in batches, and changes within half a minute. The server returns records in the
order of writing, so the latest ones are searched among so many more.
"""
_READS = frozenset({"read", "table_load", "table_read", "table_scan"})
_GRANTS = frozenset({"grant", "revoke", "give", "take", "role_assign", "privilege_grant"})
"""Actions whose records say first who received what."""
_ROLE = re.compile(
    r"^role (?P<first>.+?): (?P<what>(?:no longer )?(?:allow|deny) .+)$|^(?P<former>.+), role (?P<last>.+)$"
)
"""The detail of a grant: the role and its privileges. Records of earlier releases have the role at the end."""
_PRIVILEGE = re.compile(r"(?:no longer )?(?:allow |(deny ))([A-Z_]+) on .+")
_ABOVE = frozenset({"grant", "revoke", "access", "privilege_grant"})
"""Actions on an object that count for all objects below it."""
_SCANNED = 5_000
"""The number of newest records among which those about containers are searched."""
_GRANT_FIRST = ("at", "receiver", "privileges", "path", "user", "change")
_DAYS_MAX = 36_500
_AGO = re.compile(r"([0-9]{1,6})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}

app = App(name="audit", default_parameter=Parameter(negative=""))


@app.default
def audit(
    *,
    who: str | None = None,
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
        rename of the object that is there now. With `--action grant`, grants on the objects above it count, too.
    id
        Only actions on the object with this id, under all of its names. With `--action grant`, grants on the objects
        above its present path count, too.
    since
        From this time on: `2026-11-21T18:00:00Z`, a day, or `30m`, `12h`, `7d` ago.
    until
        Before this time, in the same formats.
    action
        Only this action (`table_create`), change (`drop`, `late`), operation (`load-table`), or a family: `access`,
        `grant`, `revoke`, `request`, `membership`, `restriction`, `owner`, `attachment`, `protection`, `read`,
        `change`.
    outcome
        Only actions with this outcome.
    request
        Only the request with this id.
    server
        Actions on the server and in all metalakes; only for service admins.
    limit
        The maximum number of lines.
    """
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
        newest, page = _lines(client, expected, limit=limit + 1)
        if len(newest) > limit:
            newest, page = _lines(client, expected, limit=limit + 1 + _LATE)
        moves = _moves_into(client, what, expected=expected) if what is not None and id is None else []
        moved_id = _moved_id(client, moves, path=what, expected=expected) if id is None else None
        present = _present_path(client, id, server=server) if id is not None and action in _ABOVE else what
        above = _grants_above(client, present, expected=expected) if present is not None and action in _ABOVE else []
        is_unknown = who is not None and not newest and _is_missing(client, user=who)
        hides_others = page.own and (who is None or not _is_caller(client, user=who))
    known = {line.id for line in newest}
    newest += [line for line in (*moves, *above) if line.id not in known]
    newest.sort(key=lambda line: line.at, reverse=True)  # refusals are recorded before changes
    if moved_id is not None and common.output_format == "table":
        print(f"note: it had other names: 'limnos audit --id {moved_id}' has all", file=sys.stderr)
    if common.output_format == "table":
        if above:
            are = "1 of them is" if len(above) == 1 else f"{len(above)} of them are"
            print(f"note: {are} on objects above {present}, and count for it", file=sys.stderr)
        for note in _notes(page, hides_others=hides_others, action=action):
            print(f"note: {note}", file=sys.stderr)
    if len(newest) > limit:
        earlier = "" if since is not None else ", or --since DAY,"
        print(f"note: the newest {limit} records; --limit NUMBER{earlier} shows others", file=sys.stderr)
    if is_unknown:
        print(f"note: user {who} does not exist: 'limnos list users' lists the existing ones", file=sys.stderr)
    rows = [_row(line, common.output_format) for line in newest[:limit]]
    is_plain = common.output_format == "table" and table_options.get() == TableOptions()
    columns = _columns(rows, action=action, omits_path=what is not None and is_plain)
    show_rows(rows, columns, output_format=common.output_format, empty="no lines")


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


def _notes(page: AuditPage, *, hides_others: bool, action: str | None) -> Iterator[str]:
    """Yield what the records leave out: those of other users, and reads that are not recorded or have other names."""
    if hides_others:
        yield "your own actions; the owner of the metalake sees those of others"
    if action in _READS and not page.records_reads:
        yield (
            "reads by engines are not recorded, because the server's setting audit.reads is off; previews of rows are"
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


def _lines(client: Client, expected: dict[str, object], *, limit: int) -> tuple[list[AuditLine], AuditPage]:
    """Return up to `limit` audit records, newest first, and the page of the last ones."""
    lines: list[AuditLine] = []
    before: int | None = None
    while True:
        page = client.audit.read(**expected, before=before, limit=min(limit - len(lines), PAGE))  # type: ignore[arg-type]
        lines += page.lines
        before = page.next
        if not page.more or len(lines) >= limit:
            return lines, page


def _is_missing(client: Client, *, user: str) -> bool:
    """Return whether the server says that a user does not exist; False if the caller may not know."""
    try:
        client.users.get(user)
    except (ClientError, InvalidName) as error:
        return isinstance(error, NotFoundError)
    return False


def _is_caller(client: Client, *, user: str) -> bool:
    """Return whether a user is the caller; False if the server does not say."""
    try:
        return client.whoami() == user
    except ClientError:
        return False


def _moved_id(
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
            lines, _ = _lines(client, filters, limit=PAGE)
            moves += [line for line in lines if line.new_path == expected["path"]]
    except (ClientError, InvalidName):
        return []
    return moves


def _grants_above(client: Client, path: str, *, expected: dict[str, object]) -> list[AuditLine]:
    """Return the records of grants on the metalake and on the containers of a path, among the newest records. Grants of
    nothing but the creation of objects are left out, since they give no access to what exists.
    """
    try:
        parts = display.parse(path)
    except InvalidName:
        return []
    containers = {display.render(parts[:length]) for length in range(1, len(parts))}
    lines, _ = _lines(client, {**expected, "path": None, "object_id": None}, limit=_SCANNED)
    return [line for line in lines if _is_above(line, containers)]


def _is_above(line: AuditLine, containers: Container[str]) -> bool:
    about = line.object
    if about is None or line.change not in {"grant", "revoke"}:
        return False
    privileges = [each.removeprefix("deny ") for each in _grant_of(line)["privileges"].split(", ")]
    is_about_content = not all(each.startswith("CREATE_") for each in privileges)
    is_container = about.kind == "metalake" or (about.kind in {"catalog", "namespace"} and about.path in containers)
    return is_container and is_about_content


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
        "detail": line.detail or "" if line.outcome == "done" or not line.rights else "",
        "right": _right_sentence(right),
        **_grant_of(line),
        "change": line.change or line.operation or "",
        "client": line.client or "",
        "request_id": line.request_id or "",
    }
    return whole | selection | {"detail": line.detail or ""} if table_options.get().columns else selection


def _grant_of(line: AuditLine) -> dict[str, str]:
    """Return who received a role or privileges, or lost them, and which; empty texts for other records."""
    detail, about = line.detail or "", line.object
    if line.change in {"give", "take"} and about is not None:
        return {"receiver": f"{about.kind} {about.path}", "privileges": detail}
    match = _ROLE.match(detail) if line.change in {"grant", "revoke"} else None
    if match is None:
        return {"receiver": "", "privileges": detail if line.change in {"grant", "revoke"} else ""}
    words = [_PRIVILEGE.sub(r"\1\2", each) for each in (match["what"] or match["former"]).split(", ")]
    return {"receiver": f"role {match['first'] or match['last']}", "privileges": ", ".join(words)}


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
