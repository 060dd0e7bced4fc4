# SPDX-License-Identifier: Apache-2.0
"""Audit records: queried with filters, inserted in commit order, and deleted after a retention period.

Must not know requests. `audit_conversion` creates records from change rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from json import dumps
from typing import Final, NamedTuple

import msgspec

from limnos.model.audit import AuditRecord
from limnos.store.sql import Load, Params, Sql, Value
from limnos.store.transaction import StoreTransaction

EXPIRED_AT_ONCE: Final = 500
SCANNED_AT_ONCE: Final = 2_000
"""The number of records that one read examines if a filter has no index, or if its index has more records."""
_COLUMNS: Final = {
    "id": "id",
    "metalake_id": "metalake_id",
    "at": "at",
    "user": "user_name",
    "user_id": "user_id",
    "outcome": "outcome",
    "change": "change",
    "action": "action",
    "kind": "kind",
    "object_id": "object_id",
    "path": "path",
    "new_path": "new_path",
    "detail": "detail",
    "rights": "rights",
    "protocol": "protocol",
    "operation": "operation",
    "status": "status",
    "request_id": "request_id",
    "client": "client",
    "peer": "peer",
    "credential": "credential",
    "zone": "zone",
    "revision": "revision",
    "ordinal": "ordinal",
}
"""The fields of `AuditRecord`, in order, with their columns."""
_NAMES: Final = ", ".join(_COLUMNS.values())
PUT = Sql(f"INSERT INTO audit ({_NAMES}) VALUES ({', '.join(f':{field}' for field in _COLUMNS)})")
FIRST_AT = Sql("SELECT min(at) FROM audit")
EXPIRE = Sql("DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE at < :before ORDER BY at LIMIT :limit)")
_EXACT: Final = "SELECT value FROM json_each(:exact)"
_EXACT_POSTGRES: Final = "SELECT v FROM json_array_elements_text(CAST(:exact AS json)) v"
_FILTERS: Final = {
    "metalake_id": "metalake_id = :metalake_id",
    "user": "user_name = :user",
    "user_id": "user_id = :user_id",
    "object_id": "object_id = :object_id",
    "path": "(path = :path OR (path >= :below AND path < :beyond))",
    "exact": f"path IN ({_EXACT})",
    "since": "at >= :since",
    "until": "at < :until",
    "action": "(action = :action OR change = :action OR operation = :action)",
    "outcome": "outcome = :outcome",
    "request_id": "request_id = :request_id",
    "before": "id < :before",
    "after": "id > :after",
    "first": "id >= :first",
    "last": "id <= :last",
}
_GRANTS: Final = ("grant", "give", "grant-privileges", "grant-roles-to-user", "grant-roles-to-group")
_REVOCATIONS: Final = ("revoke", "take", "revoke-privileges", "revoke-roles-from-user", "revoke-roles-from-group")
_RESTRICTIONS: Final = ("restrict", "unrestrict", "set-restriction", "remove-restriction")
_MEMBERSHIPS: Final = ("join", "leave", "add-members", "remove-member")
_STATES: Final = ("enable", "disable", "enable-user")
_PRESETS: Final = ("change-access-preset", "answer-access-request")
_OBJECT_CHANGES: Final = ("create", "alter", "commit", "move", "drop", "undrop", "purge")
_TOKENS: Final = ("create-token", "revoke-token", "create-secret", "end-secret")
_READS: Final = ("table_load", "table_read", "table_scan", "view_load", "fileset_read", "model_load")
_CREDENTIALS: Final = (
    "login",
    "issue-token",
    *(f"{each}{where}" for each in _TOKENS for where in ("", "-from-console")),
    "sign-in",
    "enter",
    "from-issuer",
    "create-console-code",
    "end-session",
    "sign-out",
    "set-password",
    "remove-password",
)
FAMILIES: Final[Mapping[str, tuple[str, ...]]] = {
    "grant": (*_GRANTS, *_PRESETS),
    "revoke": _REVOCATIONS,
    "owner": ("own", "set-owner"),
    "restriction": _RESTRICTIONS,
    "attachment": ("attach", "detach"),
    "protection": ("protect", "unprotect"),
    "membership": _MEMBERSHIPS,
    "request": ("request-access", "answer-access-request", "withdraw-access-request"),
    "read": _READS,
    "change": _OBJECT_CHANGES,
    "token": _CREDENTIALS,
    "access": (
        *_GRANTS,
        *_REVOCATIONS,
        "own",
        "set-owner",
        *_RESTRICTIONS,
        *_MEMBERSHIPS,
        *_STATES,
        *_PRESETS,
    ),
}
"""Families of actions: for a word of `--action`, the changes, and the operations of refused requests; of `read` the
actions, since a load of the metadata and a read with a row filter or a mask have others.
"""
_SCANNED: Final = frozenset({"user_id", "since", "until", "action", "outcome"})
"""Filters without an index in the order of ids: the rows between two matching records are read, too."""


class AuditFilter(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A filter of audit records: all set fields must match.

    With `after` the order is oldest first, else newest first. `path` is an object's path below the metalake and
    includes everything below it; `exact` are paths of single objects, of which one must match. `since` and `until` are
    milliseconds since 1970; `until` is excluded. `before` and `after` are record IDs, both excluded. `action` also
    matches the change and the operation of a record.
    """

    metalake_id: int | None = None
    user: str | None = None
    user_id: int | None = None
    object_id: int | None = None
    path: str | None = None
    exact: tuple[str, ...] = ()
    since: int | None = None
    until: int | None = None
    action: str | None = None
    outcome: str | None = None
    request_id: str | None = None
    before: int | None = None
    after: int | None = None


@cache
def _page(names: tuple[str, ...], *, family: str = "") -> Sql:
    """Build the SELECT with conditions for the columns `names` only, so that each combination of filters can use its
    index. With a family of actions, the action is one of it.

    Without a range of ids, the few records of a path are read by the path and sorted. `id + 0` keeps PostgreSQL from
    reading all records in the order of ids.
    """
    where = _audit_conditions(names, family=family)
    is_few = bool({"path", "exact"}.intersection(names)) and not {"first", "last"}.intersection(names)
    descending = "" if "after" in names else " DESC"
    order = "id + 0" if is_few else "id"
    text = f"SELECT {_NAMES} FROM audit WHERE {where} ORDER BY {order}{descending} LIMIT :limit"
    return Sql(text.replace(_EXACT, _EXACT_POSTGRES), on_sqlite=text)


def _audit_conditions(names: tuple[str, ...], *, family: str) -> str:
    words = ", ".join(f"'{word}'" for word in FAMILIES.get(family, ()))
    filters = {**_FILTERS, "action": f"(action = :action OR change IN ({words}) OR operation IN ({words}))"}
    if family == "read":
        filters["action"] = f"(action IN (:action, {words}) OR operation = :action)"
    if family == "token":  # also those that no request for a token makes: of the first start, of statements and jobs
        filters["action"] = f"(operation IN ({words}) OR (kind = 'token' AND change IN ('create', 'revoke')))"
    if family in {"grant", "access"}:  # these operations also revoke, decline, or change nothing
        filters["action"] = f"(change IN ({words}) OR (outcome <> 'done' AND operation IN ({words})))"
    return " AND ".join((filters if words else _FILTERS)[name] for name in names) or "1 = 1"


AT_PATH = Sql(f"SELECT id FROM audit WHERE {_FILTERS['path']} LIMIT :rows")
AT_EXACT = Sql(
    f"SELECT id FROM audit WHERE path IN ({_EXACT_POSTGRES}) LIMIT :rows",
    on_sqlite=f"SELECT id FROM audit WHERE path IN ({_EXACT}) LIMIT :rows",
)


@cache
def _end(names: tuple[str, ...]) -> Sql:
    """Build the SELECT of the id at which a read of `:rows` more records ends."""
    where = " AND ".join(_FILTERS[name] for name in names) or "1 = 1"
    order = "" if "after" in names else " DESC"
    return Sql(f"SELECT id FROM audit WHERE {where} ORDER BY id{order} LIMIT 1 OFFSET :rows")


class AuditPart(NamedTuple):
    """Records of one read. `following` is the id after which the next read begins; None at the end."""

    records: list[AuditRecord]
    following: int | None


def lines_read(audit_filter: AuditFilter, *, limit: int) -> Load[list[AuditRecord]]:
    """Read up to `limit` records in the order of their IDs: the newest first, or with `after` the oldest first."""
    return (yield from _lines_read(_filters_of(audit_filter), audit_filter.path, limit=limit))


def lines_part_read(audit_filter: AuditFilter, *, limit: int) -> Load[AuditPart]:
    """Read what `lines_read` reads, but examine at most `SCANNED_AT_ONCE` records, or twice as many for a path."""
    filters = _filters_of(audit_filter)
    indexed = {name: value for name, value in filters.items() if name not in {*_SCANNED, "path", "exact"}}
    if audit_filter.path is not None:
        at_path = yield AT_PATH, {**_path_range(audit_filter.path), "path": audit_filter.path, "rows": SCANNED_AT_ONCE}
        is_indexed = len(at_path) < SCANNED_AT_ONCE
    elif audit_filter.exact:
        at_paths = yield AT_EXACT, {"exact": filters["exact"], "rows": SCANNED_AT_ONCE}
        is_indexed = len(at_paths) < SCANNED_AT_ONCE
    else:
        is_indexed = _SCANNED.isdisjoint(filters)
    if is_indexed:
        return AuditPart((yield from lines_read(audit_filter, limit=limit)), None)
    ends = yield _end(tuple(indexed)), {**indexed, "rows": SCANNED_AT_ONCE - 1}
    if not ends:
        return AuditPart((yield from lines_read(audit_filter, limit=limit)), None)
    filters["first" if audit_filter.after is None else "last"] = end = ends[0][0]
    records = yield from _lines_read(filters, audit_filter.path, limit=limit)
    return AuditPart(records, end if len(records) < limit else None)


class AuditMoment(NamedTuple):
    """The position of a record in the order of times: its time in milliseconds since 1970, and its id."""

    at: int
    id: int


NEWEST: Final = AuditMoment(2**62, 2**62)
"""The position after all records."""
_BEFORE_ALL: Final = -1
"""The id in a position before all records of its time."""
_OLDEST: Final = AuditMoment(-1, _BEFORE_ALL)
TIME_END = Sql(
    "SELECT at, id FROM audit WHERE metalake_id = :metalake_id AND (at, id) < (:before_at, :before_id) AND at >= :since"
    " ORDER BY at DESC, id DESC LIMIT 1 OFFSET :rows"
)
FEW = {
    name: Sql(f"SELECT id FROM audit WHERE {_FILTERS[name]} LIMIT :rows")
    for name in ("user", "object_id", "request_id")
} | {"path": AT_PATH, "exact": AT_EXACT}
"""Statements that tell whether a filter has few records, which are read by its index and sorted."""


class AuditTimePart(NamedTuple):
    """Records of one read, the latest first. `following` is the position before which the next read begins; None at the
    end.
    """

    records: list[AuditRecord]
    following: AuditMoment | None


@cache
def _select_period(names: tuple[str, ...], *, family: str = "", is_few: bool = False, has_rights: bool = True) -> Sql:
    """Build the SELECT of records between two moments, the latest first. Without `has_rights` the access decisions,
    which are the longest field, are empty.

    The bounds of times are written once: with a second pair, of the filter, SQLite searches the index from the filter's
    end, and each of many reads passes over all records before its first one.

    With `is_few`, the filters' index is used and its records are sorted: `at + 0` keeps both stores from using the
    index of the times instead, which has all records.
    """
    fields = _NAMES if has_rights else _NAMES.replace("rights", "'[]' AS rights")
    moments = "(at, id) < (:before_at, :before_id) AND (at, id) >= (:from_at, :from_id)"
    others = tuple(name for name in names if name not in ("since", "until"))
    where, order = f"{_audit_conditions(others, family=family)} AND {moments}", "at DESC, id DESC"
    if is_few:
        where, order = (re.sub(r"(?<!:)\b(at|id|metalake_id)\b", r"\1 + 0", text) for text in (where, order))
    text = f"SELECT {fields} FROM audit WHERE {where} ORDER BY {order} LIMIT :limit"
    return Sql(text.replace(_EXACT, _EXACT_POSTGRES), on_sqlite=text)


def latest_part_read(
    audit_filter: AuditFilter, before: AuditMoment, *, limit: int, has_rights: bool = True
) -> Load[AuditTimePart]:
    """Read up to `limit` records of a metalake before a moment, the latest first. At most `SCANNED_AT_ONCE` records are
    examined. The ids of the filter are ignored. Without `has_rights` the records have no access decisions.
    """
    filters = {name: value for name, value in _filters_of(audit_filter).items() if name not in ("before", "after")}
    params: dict[str, Value] = {**filters, **_path_range(audit_filter.path)}
    before = min(before, AuditMoment(audit_filter.until, _BEFORE_ALL)) if audit_filter.until is not None else before
    moment = {"before_at": before.at, "before_id": before.id}
    is_few = False
    for name in FEW.keys() & filters.keys():
        rows = yield FEW[name], {**params, "rows": SCANNED_AT_ONCE}
        is_few = is_few or len(rows) < SCANNED_AT_ONCE
    end: AuditMoment | None = None
    if not is_few:
        params |= {"since": params.get("since", 0)}
        ends = yield TIME_END, {**params, **moment, "rows": SCANNED_AT_ONCE - 1}
        end = AuditMoment(*ends[0]) if ends else None
    first = max(end or _OLDEST, AuditMoment(audit_filter.since or 0, _BEFORE_ALL))
    action = str(filters.get("action"))
    family = action if action in FAMILIES else ""
    statement = _select_period(tuple(filters), family=family, is_few=is_few, has_rights=has_rights)
    rows = yield statement, {**params, **moment, "from_at": first.at, "from_id": first.id, "limit": limit}
    records = [AuditRecord(*row) for row in rows]
    return AuditTimePart(records, end if len(records) < limit else None)


def narrows_action(word: str) -> bool:
    """Return whether the filter `action` finds all records that have a word as action, change or operation."""
    return word not in FAMILIES or word in FAMILIES[word]


def _filters_of(audit_filter: AuditFilter) -> dict[str, Value]:
    fields = msgspec.structs.asdict(audit_filter)
    fields["exact"] = dumps(audit_filter.exact) if audit_filter.exact else None
    return {name: fields[name] for name in _FILTERS if fields.get(name) is not None}


def _lines_read(filters: Mapping[str, Value], path: str | None, *, limit: int) -> Load[list[AuditRecord]]:
    action = str(filters.get("action"))
    statement = _page(tuple(filters), family=action if action in FAMILIES else "")
    rows = yield statement, {**filters, **_path_range(path), "limit": limit}
    return [AuditRecord(*row) for row in rows]


def _path_range(path: str | None) -> dict[str, Value]:
    """Return the query parameters for the range of paths that have `path` and a dot as their prefix.

    A path component that contains a dot is quoted, so only paths below `path` have this prefix.
    """
    return {} if path is None else {"below": f"{path}.", "beyond": f"{path}/"}


def first_at(tx: StoreTransaction) -> int | None:
    """Return the time of the oldest record in milliseconds since 1970, or None if there are no records."""
    rows: int | None = tx.rows(FIRST_AT, {})[0][0]
    return rows


def lines_put(tx: StoreTransaction, lines: Sequence[AuditRecord]) -> None:
    """Insert records with ascending IDs in the given order. The permit's zone is 0."""
    ids = tx.session.next_ids(len(lines))
    tx.session.many(PUT, [_params(line, number) for line, number in zip(lines, ids, strict=True)])


def _params(line: AuditRecord, number: int) -> Params:
    return {**{field: getattr(line, field) for field in _COLUMNS}, "id": number}


def lines_expire(tx: StoreTransaction, *, keep_ms: int) -> int:
    """Delete up to `EXPIRED_AT_ONCE` records older than `keep_ms`. Returns the number of deleted records."""
    return tx.count(EXPIRE, {"before": tx.now_ms - keep_ms, "limit": EXPIRED_AT_ONCE})
