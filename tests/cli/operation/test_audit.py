# SPDX-License-Identifier: Apache-2.0
"""`limnos audit`: the order and the words of the printed records."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta

import pytest

from limnos.cli.tables import layout
from tests.cli.conftest import Run
from tests.client.fake import FakeAnswer, FakeServer

AUDIT = "/api/limnos/v1/metalakes/lake/audit?limit=51"
ABOVE_RAW = "exact=lake&exact=main&exact=main.raw"
"""The paths above a table of main.raw, of which the server sends the records."""


def test_records_are_printed_in_the_order_of_their_times(fake: FakeServer, limnos: Run) -> None:
    """Changes, which the server records later than refusals, are printed at their times, the newest first. A change
    without a word of its own is printed as its operation.
    """
    lines = [
        {"id": 3, "at": "2026-11-28T12:00:01Z", "user": "ana", "outcome": "done", "change": "create", "operation": "a"},
        {"id": 2, "at": "2026-11-28T12:00:03Z", "user": "ana", "outcome": "refused", "operation": "load-table"},
        {"id": 1, "at": "2026-11-28T12:00:02Z", "user": "ana", "outcome": "done", "change": "other", "operation": "b"},
    ]
    fake.on("GET", AUDIT, {"lines": lines, "next": None, "more": False})

    done = limnos("audit", "--output", "csv", "--columns", "at,did")

    assert done.out.split() == [
        "at,did",
        "2026-11-28T12:00:03Z,load-table",
        "2026-11-28T12:00:02Z,b",
        "2026-11-28T12:00:01Z,create",
    ]


def test_refusals_without_a_decision_have_their_reason(fake: FakeServer, limnos: Run) -> None:
    """A refusal that no decision explains, as of a disabled user, has its reason in the table; another one has what was
    missing, and its reason only if `--columns` asks for it.
    """
    reason = "GET /x: User ana is disabled"
    missing = {"message": "User 'ana' is not authorized to perform operation 'a' on metadata 'm': needs SELECT_TABLE"}
    line = {"at": "2026-11-28T12:00:01Z", "user": "ana", "outcome": "refused", "operation": "load-table"}
    lines = [line | {"id": 2, "detail": reason}, line | {"id": 1, "detail": "GET /y: denied", "rights": [missing]}]
    for _ in range(2):
        fake.on("GET", AUDIT, {"lines": lines, "next": None, "more": False})

    output, details = (limnos("audit", "--output", "csv", *words).out for words in ((), ("--columns", "detail")))

    assert reason in output
    assert "needs SELECT_TABLE" in output
    assert "denied" not in output
    assert details.split("\n")[1:3] == [reason, "GET /y: denied"]


def test_records_beyond_the_limit_are_reported(fake: FakeServer, limnos: Run) -> None:
    """A note says that there are more records than the limit; with all records there is none."""
    lines = [{"id": at, "at": f"2026-11-28T12:00:0{at}Z", "user": "ana", "outcome": "done"} for at in (3, 2, 1)]
    for limit in (2, 3):
        page = {"lines": lines[: limit + 1], "next": None, "more": False}
        for requested in (limit + 1, limit + 501):
            fake.on("GET", AUDIT.replace("51", str(requested)), page)

    cut, whole = (limnos("audit", "--limit", str(limit)) for limit in (2, 3))

    assert isinstance(cut.result, list)
    assert [line["id"] for line in cut.result] == [3, 2]
    assert "note: the newest 2 records" in cut.err
    assert "note" not in whole.err


@pytest.mark.parametrize("status", [404, 403])
def test_no_records_of_an_unknown_user_have_a_note(fake: FakeServer, limnos: Run, status: int) -> None:
    """Without records of a user who does not exist, a note says so; not for a caller who may not know."""
    fake.on("GET", AUDIT.replace("?", "?user=bem&"), {"lines": [], "next": None, "more": False})
    fake.on("GET", AUDIT.replace("?", "?user=bem&").replace("51", "551"), {"lines": [], "next": None, "more": False})
    fake.on("GET", "/api/metalakes/lake/users/bem", {"message": "no"}, status=status)

    done = limnos("audit", "--who", "bem")

    assert ("user bem does not exist: 'limnos list users'" in done.err) is (status == 404)


@pytest.mark.parametrize(
    "text,path", [("svc-etl", "%60svc-etl%60"), ("main.raw.t", "main.raw.t"), ("`a.b`", "%60a.b%60")]
)
def test_names_of_records_are_quoted_as_the_server_stores_them(
    fake: FakeServer, limnos: Run, text: str, path: str
) -> None:
    """A name with other characters than letters is looked for in back-quotes, whether it is typed with them or not."""
    fake.on("GET", AUDIT.replace("?", f"?path={path}&"), {"lines": [], "next": None, "more": False})

    assert limnos("audit", "--what", text).code == 0


@pytest.mark.parametrize(
    "detail", ["role r: allow SELECT_TABLE on table main.raw.t", "allow SELECT_TABLE on table main.raw.t, role r"]
)
def test_grants_say_first_who_received_what(fake: FakeServer, limnos: Run, detail: str) -> None:
    """The receiver and the privileges follow the time, as this release and earlier ones record them."""
    about = {"id": 7, "kind": "table", "path": "main.raw.t"}
    receiver = {"id": 9, "kind": "user", "path": "sam"}
    line = {"user": "ana", "outcome": "done", "operation": "change-access-preset"}
    lines = [
        {**line, "id": 2, "at": "2026-11-28T12:00:02Z", "change": "give", "detail": "role r", "object": receiver},
        {**line, "id": 1, "at": "2026-11-28T12:00:01Z", "change": "grant", "detail": detail, "object": about},
    ]
    fake.on("GET", AUDIT.replace("?", "?action=grant&"), {"lines": lines, "next": None, "more": False})

    done = limnos("audit", "--action", "grant", "--output", "csv").out.splitlines()

    assert [each.split(",")[:6] for each in done] == [
        ["at", "receiver", "privileges", "path", "user", "change"],
        ["2026-11-28T12:00:02Z", "user sam", "role r", "sam", "ana", "give"],
        ["2026-11-28T12:00:01Z", "role r", "SELECT_TABLE", "main.raw.t", "ana", "grant"],
    ]


def test_privileges_of_a_grant_are_shown_on_a_narrow_terminal() -> None:
    """At 80 columns a table of grants has its receivers and privileges."""
    row = {"at": "2026-11-28T12:00:02.000Z", "receiver": "role user:sam", "privileges": "USE_SCHEMA, SELECT_TABLE"}
    rows = [row | {"path": "main.raw", "user": user, "change": "grant", "kind": "table"} for user in ("ana", "admin")]

    text = layout(rows, {each: each for each in rows[0]}, width=80)

    assert text.lines[0].split()[:4] == ["at", "receiver", "privileges", "path"]


def test_latest_records_are_chosen_by_their_times(fake: FakeServer, limnos: Run) -> None:
    """Records are not written in the order of their times: those of the latest times are printed, not those that were
    written last.
    """
    written = [
        {"id": number, "at": f"2026-11-28T12:00:{second:02}Z", "user": "ana", "outcome": "done"}
        for number, second in ((5, 1), (4, 0), (3, 9), (2, 8), (1, 7))
    ]
    page = {"next": None, "more": False}
    fake.on("GET", AUDIT.replace("51", "3"), {**page, "lines": written[:3], "more": True, "next": 3})
    fake.on("GET", AUDIT.replace("51", "503"), {**page, "lines": written})

    done = limnos("audit", "--limit", "2", "--output", "csv", "--columns", "id")

    assert done.out.split() == ["id", "3", "2"]


@pytest.mark.parametrize("own", [True, False])
def test_note_about_own_records_is_printed(fake: FakeServer, limnos: Run, *, own: bool) -> None:
    """A user who does not own the metalake gets the note that records of others are left out."""
    fake.on("GET", AUDIT, {"lines": [], "next": None, "more": False, "own": own})

    assert ("note: your own actions" in limnos("audit", "--output", "table").err) is own


def test_rename_to_a_path_is_among_the_records_of_the_path(fake: FakeServer, limnos: Run) -> None:
    """The object's rename to the path is shown, which the server has under the former path, with the way to the rest;
    renames to other paths, and those of other objects, are not.
    """
    move = {"at": "2026-11-28T12:00:01Z", "user": "ana", "outcome": "done", "change": "move"}
    about = {"id": 1027, "kind": "table", "path": "main.raw.zones"}
    rename_in = move | {"id": 7, "object": about, "new_path": "main.raw.areas"}
    rename_out = move | {"id": 5, "object": about | {"path": "main.raw.old"}, "new_path": "main.raw.zones"}
    base = "/api/limnos/v1/metalakes/lake"
    fake.on("GET", f"{base}/audit?path=main.raw.areas&limit=51", {"lines": [], "next": None, "more": False})
    hits = [{"id": 1027, "kind": "table", "path": ["main", "raw", "areas"], "tier": 1}]
    hits += [{"id": 9, "kind": "table", "path": ["main", "sales", "areas"], "tier": 1}]
    fake.on("GET", f"{base}/search?q=areas&limit=50", {"hits": hits})
    fake.on(
        "GET", f"{base}/audit?object=1027&limit=1000", {"lines": [rename_in, rename_out], "next": None, "more": False}
    )

    done = limnos("audit", "--path", "main.raw.areas", "--output", "table")

    assert "main.raw.zones -> main.raw.areas" in done.out
    assert "main.raw.old" not in done.out
    assert done.err == "note: it had other names: 'limnos audit --id 1027' has all\n"


@pytest.mark.parametrize("since", ["today", "0d", "2999-01-01"])
def test_export_of_an_open_day_is_refused_with_the_command_that_prints_it(
    fake: FakeServer, limnos: Run, since: str
) -> None:
    """Only complete days are exported: a day that is not over is refused before a request, with what prints it."""
    done = limnos("audit", "export", "s3://b/audit", "--since", since)

    assert (done.code, fake.calls) == (2, [])
    assert "is not complete yet" in str(done.error["message"])
    assert str(done.error["hint"]).startswith("'limnos audit --since ")


def test_days_of_an_export_are_sent_as_dates(fake: FakeServer, limnos: Run) -> None:
    """An age and a word are sent as days, and a note says that today is exported later; another text is refused."""
    fake.on("POST", "/api/limnos/v1/audit/export", {"task": 7})

    done = limnos("audit", "export", "s3://b/audit", "--since", "2d", "--until", "2999-01-01", "--output", "table")
    wrong = limnos("audit", "export", "s3://b/audit", "--since", "last week")

    body = fake.asked[-1].body
    assert isinstance(body, dict)
    assert (done.code, wrong.code, len(fake.asked)) == (0, 2, 1)
    assert (datetime.now(UTC).date() - date.fromisoformat(body["since"])).days in {1, 2, 3}
    assert " is exported when it is over; " in done.err


def test_records_since_yesterday_are_requested_by_the_day(fake: FakeServer, limnos: Run) -> None:
    """`--since yesterday` is the day before today in UTC."""
    day = (datetime.now(UTC) - timedelta(days=1)).date().isoformat()
    fake.default = FakeAnswer(200, {"lines": [], "next": None, "more": False})

    done = limnos("audit", "--since", "yesterday")

    assert (done.code, fake.calls) == (0, [f"GET {AUDIT.removesuffix('limit=51')}since={day}&limit=51"])


def test_equal_times_are_refused(fake: FakeServer, limnos: Run) -> None:
    """Nothing is between equal times, so that a day is named by the day after."""
    refused = limnos("audit", "--since", "2026-12-01", "--until", "2026-12-01")

    assert (refused.code, fake.asked) == (2, [])
    assert refused.error["hint"] == "leave it out, or name the day after"


def test_grants_on_containers_count_for_an_object(fake: FakeServer, limnos: Run) -> None:
    """The grants of a path have those on its metalake, catalog and namespace, but not those on other objects, and none
    that only lets objects be created. A note says how many they are.
    """

    def grant(number: int, kind: str, *, path: str, detail: str) -> dict[str, object]:
        about = {"id": number, "kind": kind, "path": path}
        at = f"2026-11-28T12:00:0{number}Z"
        return {"id": number, "at": at, "outcome": "done", "change": "grant", "object": about, "detail": detail}

    own = grant(1, "table", path="main.raw.t", detail="role a: allow SELECT_TABLE on table main.raw.t")
    lines = [
        own,
        grant(2, "metalake", path="lake", detail="role b: allow CREATE_CATALOG on metalake lake"),
        grant(3, "metalake", path="lake", detail="role c: allow USE_CATALOG on metalake lake"),
        grant(
            4,
            "catalog",
            path="main",
            detail="role d: allow CREATE_SCHEMA on catalog main, allow SELECT_TABLE on catalog main",
        ),
        grant(5, "namespace", path="main.raw", detail="role e: deny SELECT_TABLE on namespace main.raw"),
        grant(6, "namespace", path="main.other", detail="role f: allow SELECT_TABLE on namespace main.other"),
        grant(7, "user", path="main", detail="role g"),
    ]
    page = {"next": None, "more": False}
    fake.on("GET", f"{AUDIT.partition('?')[0]}?path=main.raw.t&action=grant&limit=51", {"lines": [own], **page})
    fake.on("GET", f"{AUDIT.partition('?')[0]}?action=grant&limit=1000&{ABOVE_RAW}", {"lines": lines, **page})
    fake.on("GET", "/api/limnos/v1/metalakes/lake/search?q=t&limit=50", {"hits": [], "more": False})

    done = limnos("audit", "--path", "main.raw.t", "--action", "grant", "--output", "table", "--columns", "receiver")

    assert [line.strip() for line in done.out.splitlines()[1:]] == ["role e", "role d", "role c", "role a"]
    assert "note: 3 of them are on objects above main.raw.t, and count for it" in done.err


def access_record(number: int, change: str, *, path: str, detail: str) -> dict[str, object]:
    """Return a record of a change of access to a namespace."""
    about = {"id": number, "kind": "namespace", "path": path}
    at = f"2026-11-28T12:00:0{number}Z"
    return {"id": number, "at": at, "outcome": "done", "change": change, "object": about, "detail": detail}


def test_owners_and_restrictions_of_containers_count_for_an_object(fake: FakeServer, limnos: Run) -> None:
    """`--action access` of a path has the new owners and restrictions of its namespace, not those of another one."""
    lines = [
        access_record(1, "own", path="main.raw", detail="owner user ben, before user admin"),
        access_record(2, "restrict", path="main.raw", detail="restriction eu: region = 'EU'"),
        access_record(3, "own", path="main.other", detail="owner user ben, before user admin"),
        access_record(4, "protect", path="main.raw", detail=""),
    ]
    page = {"next": None, "more": False}
    fake.on("GET", f"{AUDIT.partition('?')[0]}?path=main.raw.t&action=access&limit=51", {"lines": [], **page})
    fake.on("GET", f"{AUDIT.partition('?')[0]}?action=access&limit=1000&{ABOVE_RAW}", {"lines": lines, **page})
    fake.on("GET", "/api/limnos/v1/metalakes/lake/search?q=t&limit=50", {"hits": [], "more": False})

    done = limnos("audit", "--path", "main.raw.t", "--action", "access", "--output", "json")

    assert [line["id"] for line in json.loads(done.out)] == [2, 1]


def test_assignments_of_roles_with_privileges_count_for_an_object(fake: FakeServer, limnos: Run) -> None:
    """`--action access` of a path has who was given, or lost, a role with privileges there, and who joined a group that
    has the role. Other roles and groups, and the assignment of an own role, are left out.
    """

    def principal(number: int, change: str, *, kind: str, name: str, detail: str) -> dict[str, object]:
        record = access_record(number, change, path=name, detail=detail)
        return {**record, "object": {"id": number, "kind": kind, "path": name}}

    granted = access_record(1, "grant", path="main.raw.t", detail="role r: allow SELECT_TABLE on table main.raw.t")
    answers = {
        "give": [
            principal(2, "give", kind="user", name="ben", detail="role r"),
            principal(3, "give", kind="group", name="crew", detail="role above"),
            principal(4, "give", kind="user", name="eve", detail="role other"),
            principal(5, "give", kind="user", name="ana", detail="role user:ana"),
        ],
        "take": [principal(6, "take", kind="user", name="ben", detail="role r")],
        "join": [
            principal(7, "join", kind="user", name="cy", detail="group crew"),
            principal(8, "join", kind="user", name="cy", detail="group others"),
        ],
        "leave": [principal(9, "leave", kind="user", name="di", detail="group staff")],
    }
    page = {"next": None, "more": False}
    base = AUDIT.partition("?")[0]
    fake.on("GET", f"{base}?path=main.raw.t&action=access&limit=51", {"lines": [granted], **page})
    fake.on("GET", f"{base}?action=access&limit=1000&{ABOVE_RAW}", {"lines": [], **page})
    fake.on("GET", "/api/limnos/v1/metalakes/lake/search?q=t&limit=50", {"hits": [], "more": False})
    use = {"privilege": "USE_CATALOG", "condition": "allow", "object": {"kind": "catalog", "name": "main"}, "groups": 1}
    rules = {"kind": "table", "rules": [{"role": "above", **use}, {"role": "user:ana", **use}]}
    fake.on("GET", "/api/limnos/v1/metalakes/lake/access/rules?path=main.raw.t&after=0&limit=1000", rules)
    groups = [{"name": "staff", "roles": ["above"]}, {"name": "others", "roles": ["other"]}]
    fake.on("GET", "/api/metalakes/lake/groups?details=true", {"groups": groups})
    for change, lines in answers.items():
        fake.on("GET", f"{base}?action={change}&limit=1000", {"lines": lines, **page})

    done = limnos("audit", "--path", "main.raw.t", "--action", "access", "--output", "json")
    noted = limnos("audit", "--path", "main.raw.t", "--action", "access", "--output", "table")

    assert [line["id"] for line in json.loads(done.out)] == [9, 7, 6, 3, 2, 1]
    assert "note: 5 of them are of who has, or had, a role with privileges on it or above it" in noted.err


def test_grants_and_holders_of_a_role_are_found_by_its_name(fake: FakeServer, limnos: Run) -> None:
    """`--path r --action access` has what role r was given, and who was given it, and a note says so."""
    lines = [
        access_record(1, "grant", path="main.a", detail="role r: allow SELECT_TABLE on namespace main.a"),
        access_record(2, "grant", path="main.a", detail="role r2: allow SELECT_TABLE on namespace main.a"),
        {**access_record(3, "give", path="ben", detail="role r"), "object": {"id": 3, "kind": "user", "path": "ben"}},
        {**access_record(4, "give", path="ben", detail="role r2"), "object": {"id": 3, "kind": "user", "path": "ben"}},
    ]
    page = {"next": None, "more": False}
    fake.on("GET", f"{AUDIT.partition('?')[0]}?path=r&action=access&limit=51", {"lines": [], **page})
    fake.on("GET", f"{AUDIT.partition('?')[0]}?action=access&limit=1000", {"lines": lines, **page})

    done = limnos("audit", "--path", "r", "--action", "access", "--output", "table")

    assert done.code == 0
    assert [line.split()[3:4] for line in done.out.splitlines()[1:]] == [["user"], ["namespace"]]
    assert "note: 2 of them are of role r: what it was given, and who was given it" in done.err


def test_ownership_and_own_role_of_a_user_are_found_by_name(fake: FakeServer, limnos: Run) -> None:
    """`--path ben --action access` has what ben owned or owns, and the grants of his own role, on other objects. Grants
    on the metalake are left out: it is above objects, not above users.
    """
    lines = [
        access_record(1, "own", path="main.a", detail="owner user ben, before user admin"),
        access_record(2, "own", path="main.b", detail="owner user ana, before user ben"),
        access_record(3, "own", path="main.c", detail="owner user benno, before user admin"),
        access_record(4, "grant", path="main.d", detail="role user:ben: allow SELECT_TABLE on namespace main.d"),
        access_record(
            5, "revoke", path="main.d", detail="role user:ben: no longer allow SELECT_TABLE on namespace main.d"
        ),
        access_record(6, "grant", path="main.d", detail="role benign: allow SELECT_TABLE on namespace main.d"),
        access_record(7, "grant", path="lake", detail="role r: allow USE_CATALOG on metalake lake"),
    ]
    lines[-1]["object"] = {"id": 1, "kind": "metalake", "path": "lake"}
    page = {"next": None, "more": False}
    fake.on("GET", f"{AUDIT.partition('?')[0]}?path=ben&action=access&limit=51", {"lines": [], **page})
    fake.on("GET", f"{AUDIT.partition('?')[0]}?action=access&limit=1000", {"lines": lines, **page})
    fake.on("GET", "/api/limnos/v1/metalakes/lake/search?q=ben&limit=50", {"hits": [], "more": False})

    done = limnos("audit", "--path", "ben", "--action", "access", "--output", "json")

    assert [line["id"] for line in json.loads(done.out)] == [5, 4, 2, 1]


def test_reason_of_a_failure_is_shown(fake: FakeServer, limnos: Run) -> None:
    """The table has the detail of an action that was allowed and failed: the request and the error."""
    right = {"action": "table_drop", "target": {}, "factors": [], "message": "has DROP"}
    record = {"id": 1, "at": "2026-11-28T12:00:01Z", "user": "ana", "outcome": "failed", "rights": [right]}
    line = record | {"object": {"id": 7, "kind": "table", "path": "main.raw.t"}, "detail": "DELETE /t: protected"}
    fake.default = FakeAnswer(200, {"lines": [line], "next": None, "more": False})

    assert "DELETE /t: protected" in limnos("audit", "--output", "table", "--wide").out


@pytest.mark.parametrize("who, is_noted", [("ana", False), ("ben", True)])
def test_note_about_own_records_is_printed_for_another_user(
    fake: FakeServer, limnos: Run, who: str, is_noted: bool
) -> None:
    """Records of another user are left out for a caller who does not own the metalake, which a note says."""
    fake.on("GET", AUDIT.replace("limit", f"user={who}&limit"), {"lines": [], "next": None, "more": False, "own": True})
    fake.on("GET", "/api/limnos/v1/whoami", {"user": "ana"})

    assert ("note: your own actions" in limnos("audit", "--who", who, "--output", "table").err) is is_noted


def test_other_names_are_noted_with_a_filter(fake: FakeServer, limnos: Run) -> None:
    """The note about other names is there with a filter that leaves out the move, too; the move is not shown then."""
    base, none = "/api/limnos/v1/metalakes/lake", {"lines": [], "next": None, "more": False}
    move = {"id": 7, "at": "2026-11-28T12:00:01Z", "user": "ana", "outcome": "done", "change": "move"}
    about = {"id": 1027, "kind": "table", "path": "main.raw.zones"}
    fake.on("GET", f"{base}/audit?path=main.raw.areas&action=restriction&limit=51", none)
    fake.on("GET", f"{base}/audit?action=restriction&limit=1000&{ABOVE_RAW}", none)
    fake.on(
        "GET",
        f"{base}/search?q=areas&limit=50",
        {"hits": [{"id": 1027, "kind": "table", "path": ["main", "raw", "areas"], "tier": 1}]},
    )
    fake.on("GET", f"{base}/audit?object=1027&action=restriction&limit=1000", none)
    moves = {**none, "lines": [move | {"object": about, "new_path": "main.raw.areas"}]}
    fake.on("GET", f"{base}/audit?object=1027&action=move&limit=1000", moves)

    done = limnos("audit", "--path", "main.raw.areas", "--action", "restriction", "--output", "table")

    assert done.err == "note: it had other names: 'limnos audit --id 1027' has all\nno lines\n"


def test_grants_above_the_present_path_count_for_an_id(fake: FakeServer, limnos: Run) -> None:
    """`--id` with an action about grants has the grants on the containers of the object's present path."""
    base, none = "/api/limnos/v1/metalakes/lake", {"lines": [], "next": None, "more": False}
    record = {"id": 1, "at": "2026-11-28T12:00:01Z", "outcome": "done"}
    about = {"id": 7, "kind": "table", "path": "main.raw.t"}
    moved = {**record, "change": "move", "object": about, "new_path": "main.fin.t"}
    grants = [
        {
            **record,
            "id": number,
            "change": "grant",
            "object": {"id": 3, "kind": "namespace", "path": path},
            "detail": f"role r: allow SELECT_TABLE on namespace {path}",
        }
        for number, path in ((2, "main.fin"), (3, "main.raw"))
    ]
    fake.on("GET", f"{base}/audit?object=7&action=grant&limit=51", none)
    fake.on("GET", f"{base}/audit?object=7&limit=1", {**none, "lines": [moved]})
    fake.on("GET", f"{base}/search?q=t&limit=50", {"hits": []})
    fake.on(
        "GET", f"{base}/audit?action=grant&limit=1000&exact=lake&exact=main&exact=main.fin", {**none, "lines": grants}
    )

    done = limnos("audit", "--id", "7", "--action", "grant", "--output", "table")

    assert "main.fin" in done.out
    assert "main.raw" not in done.out
    assert done.err == "note: 1 of them is on objects above main.fin.t, and counts for it\n"


def test_access_of_a_user_names_the_groups_with_further_records(fake: FakeServer, limnos: Run) -> None:
    """The records of what a user was given have a note with the command for each group that the user is in, and how
    many more groups there are.
    """
    path = "/api/limnos/v1/metalakes/lake"
    line = {
        "id": 1,
        "at": "2026-11-28T12:00:02Z",
        "user": "ana",
        "outcome": "done",
        "change": "join",
        "object": {"id": 7, "kind": "user", "path": "sam"},
        "detail": "group support",
    }
    answer = {"lines": [line], "next": None, "more": False}
    fake.on("GET", f"{path}/audit?path=sam&action=access&limit=51", answer)
    fake.on("GET", f"{path}/audit?action=access&limit=1000", answer)
    fake.on("GET", f"{path}/users/sam/groups", {"groups": ["support", "a b", "c", "d"]})

    done = limnos("audit", "--path", "sam", "--action", "access", "--output", "table")

    assert (
        "note: sam is in groups support, a b, c and 1 more: 'limnos audit --path support --action access'" in done.err
    )
    assert "--path 'a b'" in done.err
    assert "--path d" not in done.err


@pytest.mark.parametrize("outcome, end", [("refused", "forbidden"), ("done", "nothing to change")])
def test_preset_without_effect_names_its_holder(fake: FakeServer, limnos: Run, outcome: str, end: str) -> None:
    """A refused preset, and one that changed nothing, have the holder and the preset in place of privileges."""
    line = {
        "id": 1,
        "at": "2026-11-28T12:00:01Z",
        "outcome": outcome,
        "user": "ben",
        "operation": "change-access-preset",
        "detail": f"grant preset reader on table main.raw.t to user ana: {end}",
        "object": {"id": 7, "kind": "table", "path": "main.raw.t"},
        "rights": [{"message": "User 'ben' is not authorized to perform operation 'x' on metadata 'y': needs Z on t"}],
    }
    for query in ("?", "?action=grant&"):
        fake.on("GET", AUDIT.replace("?", query), {"lines": [line], "next": None, "more": False})

    grants = limnos("audit", "--action", "grant", "--output", "csv", "--columns", "receiver,privileges").out
    details = limnos("audit", "--output", "csv").out

    assert "user ana,preset reader" in grants
    assert f"to user ana: {end}" in details


@pytest.mark.parametrize("action, has_note", [("privilege_grant", True), ("role_assign", True), ("grant", False)])
def test_right_to_grant_has_a_note_about_presets(fake: FakeServer, limnos: Run, action: str, has_note: bool) -> None:
    """A filter by the right that a grant needs misses a part of the presets, so a note names the family `grant`."""
    fake.on("GET", AUDIT.replace("?", f"?action={action}&"), {"lines": [], "next": None, "more": False})

    done = limnos("audit", "--action", action, "--output", "table")

    assert ("'--action grant' has who was given access, by presets too" in done.err) is has_note
