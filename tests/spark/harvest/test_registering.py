# SPDX-License-Identifier: Apache-2.0
"""Registration of harvested tables: what is sent, under which jobs, and the outcome of each table."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from limnos.client import Client
from limnos.client.activity import bulk
from limnos.client.activity.bulk import BulkPart
from limnos.client.errors import NotFoundError, UnavailableError
from limnos.client.values import BulkOutcome, IcebergTableInfo
from limnos.spark.harvest.registering import INPUT, SCHEMA, RegistrationTask, TableRegistrar
from limnos.spark.lance.server_access import ServerAccess

HOME = ServerAccess(uri="http://server", metalake="lake")
Item = dict[str, Any]


@dataclass(kw_only=True)
class Server:
    """A server that registers tables, with a hook that refuses items; it remembers jobs as the real one does."""

    tables: dict[tuple[str, ...], tuple[str, dict[str, object]]] = field(default_factory=dict)
    refuse: Callable[[Item], BulkOutcome | None] = lambda _: None
    jobs: list[tuple[str, list[Item]]] = field(default_factory=list)
    executed: set[tuple[str, int]] = field(default_factory=set)

    @property
    def client(self) -> Client:
        """The client, with the calls that a task makes."""
        calls = SimpleNamespace(load_each=self.load_each, load=self.load)
        lances = SimpleNamespace(load=self.load_lance)
        return cast("Client", SimpleNamespace(bulk=self, tables=calls, lance=lances))

    def send(self, job: str, part: BulkPart) -> tuple[BulkOutcome, ...]:
        items = [json.loads(line) for line in part.data.splitlines()]
        self.jobs.append((job, items))
        return tuple(self._execute(job, part.after + at, item) for at, item in enumerate(items))

    def _execute(self, job: str, index: int, item: Item) -> BulkOutcome:
        path = tuple(item["path"])
        if (job, index) in self.executed:
            return BulkOutcome(index=index, outcome="made", repeated=True)
        if (refusal := self.refuse(item)) is not None:
            return BulkOutcome(index=index, outcome=refusal.outcome, code=refusal.code, message=refusal.message)
        if item["do"] != "create-namespace":
            location = item.get("metadata_location") or item["location"]
            if path in self.tables and item.get("expected") != self.tables[path][0]:
                return BulkOutcome(index=index, outcome="refused", status=409, code="already-exists", message="taken")
            self.tables[path] = (location, {"table-uuid": "u", "location": "/t", "metadata-log": []})
        self.executed.add((job, index))
        return BulkOutcome(index=index, outcome="made")

    def load_each(self, paths: Sequence[str]) -> tuple[IcebergTableInfo | None, ...]:
        return tuple(self._info(tuple(path.split("."))) for path in paths)

    def load(self, path: str, *, snapshots: str) -> IcebergTableInfo:
        raise NotFoundError(f"no table {path} ({snapshots})", status=404, code="not-found")

    def load_lance(self, path: Sequence[str]) -> SimpleNamespace:
        return SimpleNamespace(location=self.tables[tuple(path)][0])

    def _info(self, path: tuple[str, ...]) -> IcebergTableInfo | None:
        known = self.tables.get(path)
        if known is None:
            return None
        return IcebergTableInfo(path=path, metadata_location=known[0], metadata=cast("Any", known[1]), config={})

    @property
    def registrations(self) -> list[Item]:
        """The items that register tables, without those that create namespaces."""
        return [item for _, items in self.jobs for item in items if item["do"] != "create-namespace"]


def table(name: str, **values: object) -> dict[str, object]:
    """Return a harvested table of namespace `s`."""
    row: dict[str, object] = dict.fromkeys(INPUT)
    row |= {"namespace": ["s"], "name": name, "format": "iceberg", "directory": f"/wh/{name}", "state": "new"}
    return {**row, "metadata_location": f"file:///wh/{name}/v1", **values}


def task_of(*, formats: tuple[str, ...] = ("iceberg",), run: str = "r-1", plans: bool = False) -> RegistrationTask:
    """Return the task that registers in catalog `main`."""
    return RegistrationTask(home=HOME, into=("main",), formats=formats, run=run, plans=plans)


def outcomes(server: Server, *tables: Mapping[str, object], task: RegistrationTask | None = None) -> list[str]:
    """Register tables, and return the words of their outcomes."""
    task = task or task_of()
    return [each.outcome for each in TableRegistrar(server.client, task).outcomes(tables)]


def test_new_tables_are_registered_after_their_namespaces() -> None:
    """Each namespace is created once, and the jobs of the same tables have the same names in another attempt."""
    server = Server()
    task = RegistrationTask(home=HOME, into=("main", "raw"), formats=("iceberg",), run="r-1")
    registrar = TableRegistrar(server.client, task)
    first = [each.outcome for each in registrar.outcomes([table("a"), table("b")])]
    registrar.outcomes([table("c")])
    again = TableRegistrar(server.client, task).outcomes([table("a"), table("b")])

    assert first == [each.outcome for each in again] == ["registered"] * 2
    assert [(items[0]["do"], len(items)) for _, items in server.jobs] == [
        *[("create-namespace", 1), ("register-table", 2), ("register-table", 1)],
        *[("create-namespace", 1), ("register-table", 2)],
    ]
    assert server.jobs[0][1][0]["path"] == ["main", "raw", "s"]
    assert [job for job, _ in server.jobs[:2]] == [job for job, _ in server.jobs[3:]]
    assert len({job for job, _ in server.jobs}) == 3


def test_run_names_the_jobs() -> None:
    """Another run sends its own jobs: what was refused before is decided again, and names are those of jobs."""
    server = Server()
    outcomes(server, table("a"), task=task_of(run="x" * 200))
    outcomes(server, table("a"), task=task_of(run="../y z"))

    assert len({job for job, _ in server.jobs}) == 4
    assert all(len(job) <= 64 and job.replace("-", "").isalnum() for job, _ in server.jobs)


@pytest.mark.parametrize(
    "values, word",
    [
        ({"state": "vanished"}, "vanished"),
        ({"problem": "no JSON"}, "unreadable"),
        ({"conflict": "has the name of …"}, "conflict"),
        ({"format": "parquet"}, "left-out"),
        ({"format": "lance"}, "left-out"),
        ({"former_outcome": "registered", "former_location": "file:///wh/a/v1"}, "unchanged"),
        ({"former_outcome": "ahead", "former_location": "file:///wh/a/v1"}, "ahead"),
        ({"state": "unlisted", "former_outcome": "registered", "former_location": "file:///wh/a/v1"}, "unchanged"),
        ({"state": "unlisted", "former_outcome": "registered", "former_location": "file:///wh/a/v0"}, "unlisted"),
        ({"state": "unlisted"}, "unlisted"),
    ],
)
def test_table_without_news_is_not_sent(values: Mapping[str, object], word: str) -> None:
    """Neither the server nor a file is asked about it."""
    server = Server()

    assert outcomes(server, table("a", former_path="main.s.a", **values)) == [word]
    assert server.jobs == []


@pytest.mark.parametrize(
    "values",
    [
        {"former_outcome": "refused", "former_location": "file:///wh/a/v1", "former_path": "main.s.a"},
        {"former_outcome": "registered", "former_location": "file:///wh/a/v0", "former_path": "main.s.a"},
        {"former_outcome": "registered", "former_location": "file:///wh/a/v1", "former_path": "other.s.a"},
        {"former_outcome": "planned", "former_location": "file:///wh/a/v1", "former_path": "main.s.a"},
    ],
)
def test_table_with_news_is_sent(values: Mapping[str, object]) -> None:
    """After a refusal, with another metadata file, for another catalog, and after an environment's run."""
    assert outcomes(Server(), table("a", **values)) == ["registered"]


def test_environment_sends_nothing() -> None:
    """Its outcomes say what a run of production would send."""
    server = Server()
    words = outcomes(server, table("a"), table("b", problem="x"), task=task_of(plans=True))

    assert (words, server.jobs) == (["planned", "unreadable"], [])


def test_taken_names_are_compared(tmp_path: Path) -> None:
    """A table that is behind is brought forward on the condition that it still has its file; no other is changed."""

    def file(name: str, uuid: str, *log: str) -> str:
        metadata = {
            "table-uuid": uuid,
            "location": f"{tmp_path}/{name}",
            "metadata-log": [{"metadata-file": each} for each in log],
        }
        (tmp_path / name).write_text(json.dumps(metadata))
        return f"file://{tmp_path}/{name}"

    sources = {
        "behind": file("behind", "u", "file:///old"),
        "ahead": file("ahead", "u"),
        "diverged": file("diverged", "u", "file:///x"),
        "other": file("other", "v", "file:///old"),
        "unchanged": file("unchanged", "u"),
    }
    server = Server()
    for name, location in sources.items():
        log = [{"metadata-file": location}] if name == "ahead" else []
        known = location if name == "unchanged" else "file:///old"
        server.tables["main", "s", name] = (known, {"table-uuid": "u", "location": "/t", "metadata-log": log})
    tables = [table(name, metadata_location=location) for name, location in sources.items()]
    absent = table("gone", metadata_location=f"file://{tmp_path}/gone")
    server.tables["main", "s", "gone"] = ("file:///old", {"table-uuid": "u", "location": "/t"})
    words = outcomes(server, *tables, absent)

    assert words == ["brought-forward", "ahead", "diverged", "other", "unchanged", "unreadable"]
    assert [item for item in server.registrations if "exists" in item] == [
        {
            "do": "register-table",
            "path": ["main", "s", "behind"],
            "metadata_location": sources["behind"],
            "exists": "replace",
            "expected": "file:///old",
        }
    ]
    assert server.tables["main", "s", "behind"][0] == sources["behind"]


def test_repeated_attempt_has_the_outcome_of_the_first(tmp_path: Path) -> None:
    """The attempt was killed after the server had done it, so both sides are the same now."""
    file = tmp_path / "m"
    file.write_text(json.dumps({"table-uuid": "u", "location": str(tmp_path)}))
    location = f"file://{file}"
    server = Server(tables={("main", "s", "a"): (location, {"table-uuid": "u", "location": "/t"})})

    assert outcomes(server, table("a", metadata_location=location, former_location="file:///old")) == [
        "brought-forward"
    ]


def test_refusals_are_outcomes() -> None:
    """A missing right or a location that is not allowed is the outcome of that table; the others are registered."""

    def refuse(item: Item) -> BulkOutcome | None:
        if item["do"] == "create-namespace":
            return BulkOutcome(index=0, outcome="refused", message="you may not create it")
        if item["path"][-1] == "a":
            return BulkOutcome(index=0, outcome="refused", code="no-such-namespace", message="there is none")
        return None

    server = Server(refuse=refuse)
    task = task_of()
    refused, registered = TableRegistrar(server.client, task).outcomes([table("a"), table("b")])

    assert (refused.outcome, refused.code) == ("refused", "no-such-namespace")
    assert refused.message == "there is none (the namespace was not created: you may not create it)"
    assert registered.outcome == "registered"


def test_taken_name_that_cannot_be_loaded_keeps_the_refusal() -> None:
    """A view of the name, or a table that the caller may not see, is not compared."""
    refusal = BulkOutcome(index=0, outcome="refused", code="already-exists", message="There is a view s.a")
    server = Server(refuse=lambda item: refusal if item["do"] == "register-table" else None)
    task = task_of()
    (outcome,) = TableRegistrar(server.client, task).outcomes([table("a")])

    assert (outcome.outcome, outcome.message) == ("refused", "There is a view s.a")


@pytest.mark.parametrize("failures, word", [(2, "registered"), (bulk.TRIES, "failed")])
def test_items_that_fail_for_now_are_sent_again(monkeypatch: pytest.MonkeyPatch, failures: int, word: str) -> None:
    """A table is registered after some failures; the next run sends one that failed each time."""
    monkeypatch.setattr(bulk, "PAUSE_S", 0.0)
    left = [failures]

    def refuse(item: Item) -> BulkOutcome | None:
        left[0] -= item["do"] == "register-table"
        is_busy = left[0] >= 0 and item["do"] == "register-table"
        return BulkOutcome(index=0, outcome="failed", message="busy") if is_busy else None

    assert outcomes(Server(refuse=refuse), table("a")) == [word]


def test_server_that_is_not_reachable_ends_the_task() -> None:
    """Spark repeats the task, and a resumed run the step."""

    def refuse(item: Item) -> BulkOutcome | None:
        raise UnavailableError("no connection", status=0)

    with pytest.raises(UnavailableError):
        outcomes(Server(refuse=refuse), table("a"))


def test_lance_tables_are_registered_by_their_directories() -> None:
    """A newer version needs no registration, and a table of the name elsewhere is another one."""
    server = Server(tables={("main", "s", "here"): ("/wh/here/", {}), ("main", "s", "else"): ("/x", {})})
    of_lance = {"format": "lance"}
    known = table("known", **of_lance, former_outcome="registered", former_location="old", former_path="main.s.known")
    words = outcomes(
        server, *(table(name, **of_lance) for name in ("new", "here", "else")), known, task=task_of(formats=("lance",))
    )

    assert words == ["registered", "unchanged", "other", "unchanged"]
    assert server.registrations[0] == {
        "do": "register-lance-table",
        "path": ["main", "s", "new"],
        "location": "/wh/new",
    }


def test_task_yields_rows_with_paths_that_commands_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names are quoted where needed, and a hostile name forges no line."""

    class OpenedClient:
        def __enter__(self) -> Client:
            return Server().client

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr(ServerAccess, "client", lambda _: OpenedClient())
    rows = [table("a.b"), table("x\ny", problem="no")]
    task = task_of()
    (batch,) = task([pa.RecordBatch.from_pylist(rows)])

    assert batch.schema == SCHEMA
    assert batch.column("path").to_pylist() == ["main.s.`a.b`", "main.s.`x\\ny`"]
    assert batch.column("outcome").to_pylist() == ["registered", "unreadable"]
