# SPDX-License-Identifier: Apache-2.0
"""The compared features: logins, audit, vended credentials and planned scans, each on its own servers over SQLite.

May import `comparisons`, and the tests' issuer, object store and manifests. Each world yields its comparisons while its
servers run.
"""

from __future__ import annotations

import itertools
import json
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.comparisons import CONNECTIONS, ComparedServer, Comparison, Side
from bench.operations import PREFIX, new_table
from tests.iceberg_manifests import data_file, entry, listed, manifest, manifest_list
from tests.issuer import AUDIENCE, issuing
from tests.objects import objects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    World = Callable[[Path], AbstractContextManager[Sequence[Comparison]]]


TABLES: Final = f"{PREFIX}/namespaces/a/tables"
AUDITS: Final = {
    "off": {"LIMNOS__AUDIT__CHANGES": "false", "LIMNOS__AUDIT__REFUSALS": "off"},
    "changes": {"LIMNOS__AUDIT__REFUSALS": "off"},
    "reads whole": {"LIMNOS__AUDIT__READS": "whole", "LIMNOS__AUDIT__REFUSALS_PER_S_MAX": "1000000"},
}
_serial = itertools.count()


def tables_made(server: ComparedServer, prefix: str = PREFIX) -> None:
    """Create a namespace with a table of 6 KB of metadata for each connection."""
    server.ask(f"{prefix}/namespaces", {"namespace": ["a"]})
    for number in range(CONNECTIONS):
        server.ask(f"{prefix}/namespaces/a/tables", new_table(f"t{number}", width=50))


def reads(
    server: ComparedServer, method: str, *, token: str | None = None, more: tuple[str, ...] = (), at: str = TABLES
) -> list[bytes]:
    """Build a request for each table."""
    return [server.spelled(method, f"{at}/t{number}", token=token, more=more) for number in range(CONNECTIONS)]


# ------------------------------------------------------------------------------------------- authentication


@contextmanager
def signing_in(folder: Path) -> Iterator[Sequence[Comparison]]:
    """Compare HEAD with an API token and with an external issuer's, with the response cache and without."""
    with ExitStack() as stack:
        issuer = stack.enter_context(issuing())
        oidc = {"LIMNOS__OIDC__ISSUER": issuer.url, "LIMNOS__OIDC__AUDIENCES": AUDIENCE}
        comparisons = []
        for key, title, env in (
            ("signing-kept", "HEAD table", {}),
            ("signing-built", "HEAD table, no answer kept", {"LIMNOS__SERVER__KEPT_BYTES_MAX": "0"}),
        ):
            server = stack.enter_context(ComparedServer(folder / key, {**oidc, **env}))
            tables_made(server)
            sides = (
                ("by an API token", reads(server, "HEAD")),
                ("by an issuer's token", reads(server, "HEAD", token=issuer.token("admin"))),
            )
            comparisons.append(
                Comparison(key, title, tuple(repeat_requests(server, *each) for each in sides), (None, 1.1))
            )
        yield comparisons


def repeat_requests(server: ComparedServer, title: str, requests: Sequence[bytes]) -> Side:
    """Return a side that repeats the same requests."""
    return Side(title, lambda seconds: server.cost(requests, seconds=seconds))


# ----------------------------------------------------------------------------------------------- the audit


@contextmanager
def audited(folder: Path) -> Iterator[Sequence[Comparison]]:
    """Compare HEAD, load, create and commit without audit, with audit of changes, and with full audit."""
    with ExitStack() as stack:
        servers = {
            mode: stack.enter_context(ComparedServer(folder / f"audit-{mode}", env)) for mode, env in AUDITS.items()
        }
        for server in servers.values():
            tables_made(server)
        lines = Side("of audit changes", lambda seconds: _measure_audit(servers["changes"], seconds=seconds))
        yield [
            Comparison("audit-lines", "a change becomes a line", (lines,), (None,)),
            *(
                Comparison(
                    f"audit-{key}", title, tuple(_audited(server, mode, key) for mode, server in servers.items()), aims
                )
                for key, title, aims in (
                    ("head", "HEAD table", (None, 1.05, None)),
                    ("load", "load table, 6 KB", (None, 1.05, None)),
                    ("create", "create table", (None, 1.05, None)),
                    ("commit", "commit, set one property", (None, 1.05, None)),
                )
            ),
        ]


def _audited(server: ComparedServer, mode: str, key: str) -> Side:
    title = f"audit {mode}"
    if key == "create":
        return Side(title, lambda seconds: server.cost(_creates(server), seconds=seconds, once=True))
    if key == "commit":
        return repeat_requests(server, title, _commits(server))
    return repeat_requests(server, title, reads(server, "HEAD" if key == "head" else "GET"))


def _creates(server: ComparedServer) -> list[bytes]:
    """Creates of tables with ten columns, under new names."""
    body = new_table(f"made_{next(_serial):04}_00000", width=10)
    whole = server.spelled("POST", TABLES, body=body)
    return [whole.replace(b"_00000", b"_%05d" % number) for number in range(4_000)]


def _commits(server: ComparedServer) -> list[bytes]:
    """Commits that change a property."""
    return [
        server.spelled("POST", f"{TABLES}/t{number}", body={"requirements": [], "updates": [_set(value)]})
        for value in ("v", "w")
        for number in range(CONNECTIONS)
    ]


def _measure_audit(server: ComparedServer, *, seconds: float) -> float:
    """Commit for some seconds, and collect the audit lines by reading the audit. Returns CPU µs per commit."""

    def newest() -> int:
        lines = json.loads(server.ask("/api/limnos/v1/audit?limit=1&action=commit"))["lines"]
        return int(lines[0]["revision"]) if lines else 0

    before = newest()
    server.cost(_commits(server), seconds=seconds)
    return server.own_cost(newest, times=1) / max(1, newest() - before)


def _set(value: str) -> dict[str, object]:
    return {"action": "set-properties", "updates": {"k": value}}


# -------------------------------------------------------------------------------------- vended credentials


@contextmanager
def vended(folder: Path) -> Iterator[Sequence[Comparison]]:
    """Compare loads of a table of an object store without credentials and with cached ones."""
    prefix = "/iceberg/v1/lake.cloud"
    with objects() as store:
        env = {"LIMNOS__STORAGE__ALLOWED_ROOTS": "s3://lake", "LIMNOS__STORAGE__ALLOWED_ENDPOINTS": store.uri}
        with ComparedServer(folder / "vended", env) as server:
            catalog = {"name": "cloud", "type": "relational", "provider": "lakehouse-iceberg"}
            properties = {**store.properties, "warehouse": "s3://lake/cloud"}
            server.ask("/api/metalakes/lake/catalogs", {**catalog, "properties": properties})
            tables_made(server, prefix)
            delegated = ("X-Iceberg-Access-Delegation: vended-credentials",)
            sides = tuple(
                repeat_requests(server, title, reads(server, "GET", more=more, at=f"{prefix}/namespaces/a/tables"))
                for title, more in (("without credentials", ()), ("with credentials, cached", delegated))
            )
            yield [Comparison("vended-load", "load table of an object store, 6 KB", sides, (None, None))]


# ------------------------------------------------------------------------------------------- planned scans

FILES_OF_MANIFEST: Final = 1_000
COLUMNS: Final = 10


@contextmanager
def planned(folder: Path) -> Iterator[Sequence[Comparison]]:
    """Compare scan plans of 1,000 and of 10,000 files, new and repeated."""
    with ComparedServer(folder / "planned", {}) as server:
        server.ask(f"{PREFIX}/namespaces", {"namespace": ["a"]})
        comparisons = []
        for count in (1_000, 10_000):
            name = f"files{count}"
            _table_of_files(server, name, count=count)
            scan = Scans(server, name, count=count)
            scan.begin()  # starts the process that plans, and loads its library
            sides = tuple(
                Side(title, lambda _, work=work: server.own_cost(work, times=1), server.peak_mb)
                for title, work in (("planned", scan.begin), ("told again", scan.again))
            )
            comparisons.append(Comparison(f"plan-{count}", f"scan of {count:,} files", sides, (None, 1.1)))
        yield comparisons


class Scans:
    """Scan plans of one table, each fetched completely."""

    def __init__(self, server: ComparedServer, name: str, *, count: int) -> None:
        self._server = server
        self._path = f"{TABLES}/{name}"
        self._count = count
        self._id = ""

    def begin(self) -> None:
        """Create a new plan, and fetch all of it."""
        plan = json.loads(self._server.ask(f"{self._path}/plan", {}))
        self._id = plan.get("plan-id", "")
        self._fetch(plan)

    def again(self) -> None:
        """Fetch the same plan again.

        A plan that the first answer contained completely is created again, as clients do.
        """
        if self._id and not self._id.startswith("told-"):
            self._fetch(json.loads(self._server.ask(f"{self._path}/plan/{self._id}")))
        else:
            self.begin()

    def _fetch(self, plan: dict[str, list[object]]) -> None:
        task_count = len(plan["file-scan-tasks"])
        for task in plan.get("plan-tasks", ()):
            task_count += len(
                json.loads(self._server.ask(f"{self._path}/tasks", {"plan-task": task}))["file-scan-tasks"]
            )
        assert task_count == self._count, plan


def _table_of_files(server: ComparedServer, name: str, *, count: int) -> None:
    """Create a table with a snapshot of some files, each with counts and bounds of ten columns."""
    metadata = json.loads(server.ask(TABLES, new_table(name, width=COLUMNS)))["metadata"]
    place = str(metadata["location"])
    folder = _path_of(place)
    manifests = []
    for first in range(0, count, FILES_OF_MANIFEST):
        entries = [
            entry(_file(f"{place}/data/{number:07}.parquet", number))
            for number in range(first, first + FILES_OF_MANIFEST)
        ]
        data = manifest(entries)
        (folder / "metadata" / f"m{first}.avro").write_bytes(data)
        manifests.append(listed(f"{place}/metadata/m{first}.avro", data, added_files_count=FILES_OF_MANIFEST))
    (folder / "metadata" / "snap-1.avro").write_bytes(manifest_list(manifests))
    snapshot = {
        "snapshot-id": 1,
        "sequence-number": 1,
        "timestamp-ms": metadata["last-updated-ms"] + 1,
        "manifest-list": f"{place}/metadata/snap-1.avro",
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    updates = [
        {"action": "add-snapshot", "snapshot": snapshot},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 1},
    ]
    server.ask(f"{TABLES}/{name}", {"requirements": [], "updates": updates})


def _file(path: str, number: int) -> dict[str, object]:
    numbers = range(1, COLUMNS + 1)
    low, high = (number * 10).to_bytes(8, "little"), (number * 10 + 9).to_bytes(8, "little")
    return data_file(
        path,
        value_counts=dict.fromkeys(numbers, 10),
        null_value_counts=dict.fromkeys(numbers, 0),
        lower_bounds=dict.fromkeys(numbers, low),
        upper_bounds=dict.fromkeys(numbers, high),
    )


def _path_of(location: str) -> Path:
    return Path(location.removeprefix("file://").removeprefix("file:"))


WORLDS: Final[tuple[tuple[tuple[str, ...], World], ...]] = (
    (("signing-kept", "signing-built"), signing_in),
    (("audit-lines", "audit-head", "audit-load", "audit-create", "audit-commit"), audited),
    (("vended-load",), vended),
    (("plan-1000", "plan-10000"), planned),
)
"""All worlds, with the keys of their comparisons."""
