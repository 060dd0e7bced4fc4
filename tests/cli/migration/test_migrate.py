# SPDX-License-Identifier: Apache-2.0
"""`migrate`: sources that lie, are slow, change while they are read, and conflict; what is printed, and exit codes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from limnos.cli.migration import rest_catalog
from tests.cli.conftest import CommandResult, Run
from tests.client.fake import FakeServer, running

PAGES = "pageToken=&pageSize=1000"
MINE = "/iceberg/v1/lake.main"


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for nothing between attempts."""
    monkeypatch.setattr(rest_catalog, "PAUSE_S", 0.0)


@pytest.fixture
def source() -> Iterator[FakeServer]:
    """A catalog with one namespace, `a`."""
    with running() as server:
        server.on("GET", "/v1/config", {"defaults": {}, "overrides": {}})
        server.on("GET", f"/v1/namespaces?{PAGES}", {"namespaces": [["a"]]})
        server.on("GET", "/v1/namespaces/a", {"namespace": ["a"], "properties": {"owner": "them", "team": "x"}})
        server.on("GET", f"/v1/namespaces/a/views?{PAGES}", {"identifiers": []})
        yield server


def tables(source: FakeServer, **files: object) -> None:
    """Add tables to the source: the location of each, or an answer of another shape."""
    names = [{"namespace": ["a"], "name": name} for name in files]
    source.on("GET", f"/v1/namespaces/a/tables?{PAGES}", {"identifiers": names})
    for name, file in files.items():
        answer = table(str(file)) if isinstance(file, str) else file
        source.on("GET", f"/v1/namespaces/a/tables/{name}?snapshots=refs", answer)


def table(place: str, *, file: str = "m1", uuid: str = "u", log: tuple[str, ...] = ()) -> dict[str, object]:
    """Return a table as Iceberg REST does."""
    earlier = [{"metadata-file": f"{place}/metadata/{each}", "timestamp-ms": 1} for each in log]
    metadata = {"table-uuid": uuid, "location": place, "current-snapshot-id": 7, "metadata-log": earlier}
    return {"metadata-location": f"{place}/metadata/{file}", "metadata": metadata}


@contextmanager
def here(fake: FakeServer, **existing: dict[str, object]) -> Iterator[FakeServer]:
    """Add the target's answers: an empty catalog, or namespace `a` with tables."""
    fake.on("GET", "/iceberg/v1/config?warehouse=lake%2Fmain", {"overrides": {"prefix": "lake.main"}})
    if existing:
        names = [{"namespace": ["a"], "name": name} for name in existing]
        fake.on("GET", f"{MINE}/namespaces/a", {"properties": {"team": "x"}})
        fake.on("GET", f"{MINE}/namespaces/a/tables?{PAGES}", {"identifiers": names})
        for name, answer in existing.items():
            fake.on("GET", f"{MINE}/namespaces/a/tables/{name}?snapshots=refs", answer)
    properties = {"warehouse": "s3://own", "allowed-locations": "s3://former/moved"}
    catalog = {"name": "main", "type": "relational", "provider": "p", "properties": properties}
    fake.on("GET", "/api/metalakes/lake/catalogs/main", {"catalog": {**catalog, "audit": {}}})
    yield fake


def moved(limnos: Run, source: FakeServer, *flags: str) -> tuple[CommandResult, dict[str, int], dict[str, str]]:
    """Run the command. Returns its result, the counts, and the states that it printed, by table."""
    done = limnos("migrate", "from", "iceberg-rest", source.uri, "--to", "main", *flags)
    lines = [json.loads(line) for line in done.out.splitlines()]
    assert lines, done.err
    return done, lines[-1]["counts"], {".".join(line["path"]): line["state"] for line in lines[:-1]}


def test_plan_prints_text_and_a_note_on_a_terminal(fake: FakeServer, limnos: Run, source: FakeServer) -> None:
    """With tables as the output format the counts are text, and a note says that a plan changes nothing."""
    tables(source, t="s3://b/x/t")

    with here(fake):
        done = limnos("migrate", "from", "iceberg-rest", source.uri, "--to", "main", "--plan", "--output", "table")

    assert "1 new" in done.out
    assert "{" not in done.out
    assert "note: a plan; nothing was changed." in done.err
    assert [each for each in fake.asked if each.method == "POST"] == []


def test_plan_names_new_tables_and_conflicts(fake: FakeServer, limnos: Run, source: FakeServer) -> None:
    """A plan names twins by case, names that do not fit, two tables at one place, and tables that cannot be read."""
    tables(
        source,
        t="s3://b/x/t",
        T="s3://b/x/T",
        twice="s3://b/x/t",
        lies={"metadata": "none"},
        list=[1],
        other="s3://c/y/o",
    )
    source.routes["GET", f"/v1/namespaces/a/tables?{PAGES}"][0].body["identifiers"] += [  # type: ignore[index]
        {"namespace": ["a"], "name": "gone"},
        {"namespace": ["a"], "name": "."},
        {"namespace": ["a"]},
        7,
    ]
    source.on("GET", "/v1/namespaces/a/tables/.?snapshots=refs", table("s3://b/x/dot"))
    with here(fake):
        done, counts, states = moved(limnos, source, "--plan")

    assert done.code == 1
    assert counts["new"] == 3
    assert states["a.T"] == "case-twin"
    assert (states["a.twice"], states["a.lies"], states["a.list"], states["a.gone"]) == (
        "same-place",
        "unreadable",
        "unreadable",
        "gone",
    )
    flags = [f"--allowed-location {each}" for each in ("s3://former/moved", "s3://b/x", "s3://c/y")]
    assert f"limnos set main {' '.join(flags)}\n" in done.err  # the flag replaces what is allowed, so it has all
    assert [call for call in fake.calls if not call.startswith("GET")] == []


def test_run_brings_what_is_new_or_has_changed(fake: FakeServer, limnos: Run, source: FakeServer) -> None:
    """A table whose file the source has had before is replaced under that condition; one with own commits never is."""
    tables(
        source,
        new="s3://b/new",
        behind=table("s3://b/behind", file="m2", log=("m1",)),
        mine=table("s3://b/mine"),
        both=table("s3://b/both", file="m2", log=("m1",)),
        other=table("s3://b/other"),
    )
    fake.on("POST", "/x")
    with here(
        fake,
        behind=table("s3://b/behind"),
        mine=table("s3://b/mine", file="m2", log=("m1",)),
        both=table("s3://b/both", file="m3", log=("m1",)),
        other=table("s3://b/other", uuid="v", file="m9"),
    ):
        fake.default = None
        fake_bulk(fake, 2)
        done, counts, states = moved(limnos, source)

    assert done.code == 1
    assert counts == {"ahead": 1, "changed": 1, "diverged": 1, "new": 1, "other": 1}
    assert states == {"a.mine": "ahead", "a.both": "diverged", "a.other": "other"}
    (sent,) = [request for request in fake.asked if "/bulk?" in request.target]
    items = [json.loads(line) for line in sent.body.splitlines()]  # type: ignore[attr-defined]
    assert items == [
        {"do": "register-table", "path": ["main", "a", "new"], "metadata_location": "s3://b/new/metadata/m1"},
        {
            "do": "register-table",
            "path": ["main", "a", "behind"],
            "metadata_location": "s3://b/behind/metadata/m2",
            "exists": "replace",
            "expected": "s3://b/behind/metadata/m1",
        },
    ]


def test_tables_here_are_read_by_one_request(fake: FakeServer, limnos: Run, source: FakeServer) -> None:
    """The states of the target's tables come from one request; one that it lacks is loaded by itself."""
    tables(source, same="s3://b/same", new="s3://b/new", behind=table("s3://b/behind", file="m2", log=("m1",)))
    lines = [
        {"index": 0, "metadata_location": "s3://b/same/metadata/m1", "metadata": table("s3://b/same")["metadata"]},
        {"index": 1, "status": 503, "code": "unavailable", "message": "try again"},
        {"count": 2},
    ]
    load = "/api/limnos/v1/metalakes/lake/catalogs/main/load"
    fake.on("POST", load, "".join([f"{json.dumps(each)}\n" for each in lines]))
    with here(fake, same={}, behind=table("s3://b/behind")):
        fake_bulk(fake, 2)
        done, counts, _ = moved(limnos, source)

    assert (done.code, counts) == (0, {"changed": 1, "new": 1, "same": 1}), done.err
    (loads,) = [each.body for each in fake.asked if each.target == load]
    assert loads == {"paths": [["a", "same"], ["a", "behind"]], "kind": "table", "snapshots": "refs"}
    assert [each for each in fake.calls if each.endswith("?snapshots=refs")] == [
        f"GET {MINE}/namespaces/a/tables/behind?snapshots=refs"
    ]


@pytest.mark.parametrize("step", ["--plan", "--check", "--cut-over=mark", ""])
def test_table_that_was_renamed_here_does_not_come_again(
    fake: FakeServer, limnos: Run, source: FakeServer, step: str
) -> None:
    """A table that came before, and whose namespace was renamed here since, is named with its path here in each step.
    It is registered no second time; where the source went on, the line says what to do.
    """
    tables(
        source,
        moved=table("s3://b/moved"),
        late=table("s3://b/late", file="m2", log=("m1",)),
        twin=table("s3://b/twin", uuid="u"),
        fresh=table("s3://b/fresh"),
    )
    target_tables = {
        "moved": table("s3://b/moved"),
        "late": table("s3://b/late"),
        "twin": table("s3://b/twin", uuid="v"),
    }
    fake.on("GET", f"{MINE}/namespaces?{PAGES}", {"namespaces": [["z"]]})
    fake.on("GET", f"{MINE}/namespaces/z/tables?{PAGES}", {"identifiers": [{"name": name} for name in target_tables]})
    for name, answer in target_tables.items():
        fake.on("GET", f"{MINE}/namespaces/z/tables/{name}?snapshots=refs", answer)
    fake.on("GET", f"{MINE}/namespaces/a", {"properties": {"team": "x"}})
    fake.on("GET", f"{MINE}/namespaces/a/tables?{PAGES}", {"identifiers": []})
    fake.default = None
    fake_bulk(fake, 2)
    with here(fake):
        done = limnos("migrate", "from", "iceberg-rest", source.uri, "--to", "main", *step.split())

    lines = {".".join(each["path"]): each for line in done.out.splitlines()[:-1] if (each := json.loads(line))}
    assert done.code == 1
    assert (lines["a.moved"]["state"], lines["a.moved"]["text"]) == ("renamed-here", "is z.moved in the target")
    assert lines["a.late"]["state"] == "behind"
    assert lines["a.late"]["text"].endswith(": rename it there to a.late, and run again")
    assert {"a.twin", "a.fresh"}.isdisjoint(lines) or {lines["a.twin"]["state"], lines["a.fresh"]["state"]} == {
        "missing"
    }
    sent = [line for each in fake.asked if each.method == "POST" for line in each.body.splitlines()]  # type: ignore[attr-defined]
    assert not any(name in str(line) for line in sent for name in ("moved", "late"))


def fake_bulk(fake: FakeServer, count: int) -> None:
    """Answer a bulk request for any job."""
    lines = [json.dumps({"index": number, "outcome": "made"}) for number in range(count)]
    answer = "\n".join([*lines, json.dumps({"items": count})]) + "\n"
    plain = fake.answer

    def answer_of(method: str, target: str) -> object:
        if method != "POST" or "/bulk?" not in target:
            return plain(method, target)
        fake.on(method, target, answer)
        return plain(method, target)

    fake.answer = answer_of  # type: ignore[method-assign, assignment]


def test_source_that_fails_for_a_while_is_asked_again(fake: FakeServer, limnos: Run, source: FakeServer) -> None:
    """A busy source and a broken connection are no reason to leave a table out."""
    tables(source, t="s3://own/t")
    path = "/v1/namespaces/a/tables/t?snapshots=refs"
    source.routes["GET", path][:0] = []
    last = source.routes["GET", path].pop()
    source.on("GET", path, status=503).on("GET", path, hang_up=True)
    source.routes["GET", path].append(last)
    with here(fake):
        done, counts, _ = moved(limnos, source, "--plan")

    assert (done.code, counts["new"]) == (0, 1), done.err


def test_source_that_repeats_a_page_ends(fake: FakeServer, limnos: Run, source: FakeServer) -> None:
    """A list whose pages name the same next page does not go on for ever."""
    source.on("GET", f"/v1/namespaces/a/tables?{PAGES}", {"identifiers": [], "next-page-token": "p"})
    source.on("GET", "/v1/namespaces/a/tables?pageToken=p&pageSize=1000", {"identifiers": [], "next-page-token": "p"})
    with here(fake):
        done, _, _ = moved(limnos, source, "--plan")

    assert done.code == 0, done.err


@pytest.mark.parametrize("status", [401, 403])
def test_refused_credential_stops_the_command(limnos: Run, fake: FakeServer, status: int) -> None:
    """A source that refuses the credential is not a source without tables."""
    with running() as server:
        server.on("GET", "/v1/config", {"error": {"message": "who are you"}}, status=status)
        done = limnos("migrate", "from", "iceberg-rest", server.uri, "--to", "main")

    assert (done.code, "--source-token" in done.err) == (4, True)


def test_refused_credential_of_the_own_server_is_not_blamed_on_the_source(
    limnos: Run, fake: FakeServer, source: FakeServer
) -> None:
    """If this server refuses the credential, the answer names its flag and address, not those of the source."""
    fake.on("GET", "/iceberg/v1/config?warehouse=lake%2Fmain", {"error": {"message": "who are you"}}, status=401)

    done = limnos("migrate", "from", "iceberg-rest", source.uri, "--to", "main")

    assert done.code == 4
    assert "--token-file" in done.err
    assert "--source-token" not in done.err
    assert fake.uri in done.err


def test_steps_exclude_one_another(limnos: Run) -> None:
    """A plan, a comparison and a cut-over are different runs."""
    done = limnos("migrate", "from", "iceberg-rest", "http://x", "--to", "main", "--plan", "--check")

    assert done.code == 2
