"""Trino 476 on Java 25, default settings but for the catalog's address.

Starts one server, sends statements to its REST address and stops it. May import the room's archives and checks.
"""

from __future__ import annotations

import json
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from conformance.engines.archives import java_25, trino_home
from conformance.engines.checks import Check, Checks, Lake
from conformance.engines.page import block
from conformance.engines.views import make_view

_START_S = 300
_STATEMENT_S = 120


def run(lake: Lake) -> list[Check]:
    """Make schemas and tables in every way, as the administrator; then look as the reader."""
    checks = Checks("Trino 476")
    with _server(lake) as address:
        ask = lambda text: _rows(address, text)  # noqa: E731 - short, and used thirty times
        ask("CREATE SCHEMA lake.trino")
        checks.expect(
            "a schema's location is told",
            lambda: "location = 'file:" in str(ask("SHOW CREATE SCHEMA lake.trino")),
            True,
        )
        checks.expect("CREATE TABLE", lambda: ask("CREATE TABLE lake.trino.t (id bigint, city varchar)"), [])
        checks.expect("INSERT", lambda: ask("INSERT INTO lake.trino.t VALUES (1, 'Oslo'), (2, 'Rome')"), [[2]])
        checks.expect("CREATE TABLE AS", lambda: ask("CREATE TABLE lake.trino.c AS SELECT * FROM lake.trino.t"), [[2]])
        checks.expect(
            "SELECT", lambda: ask("SELECT id, city FROM lake.trino.c ORDER BY id"), [[1, "Oslo"], [2, "Rome"]]
        )
        checks.expect("UPDATE", lambda: ask("UPDATE lake.trino.c SET city = 'Roma' WHERE id = 2"), [[1]])
        checks.expect("DELETE", lambda: ask("DELETE FROM lake.trino.c WHERE id = 1"), [[1]])
        checks.expect("evolve", lambda: ask("ALTER TABLE lake.trino.c ADD COLUMN size integer"), [])
        checks.expect("rename", lambda: ask("ALTER TABLE lake.trino.c RENAME TO lake.trino.d"), [])
        checks.expect("the old name is free", lambda: ask("CREATE TABLE lake.trino.c AS SELECT 9 AS id"), [[1]])
        checks.expect(
            "both are read",
            lambda: ask("SELECT city FROM lake.trino.d") + ask("SELECT id FROM lake.trino.c"),
            [["Roma"], [9]],
        )
        checks.expect("CREATE OR REPLACE", lambda: ask("CREATE OR REPLACE TABLE lake.trino.c AS SELECT 7 AS n"), [[1]])
        checks.expect("time travel", lambda: _travel(address), [[2]])
        ask('CREATE SCHEMA lake."trino.deep"')
        checks.expect("nested schema", lambda: ask('CREATE TABLE lake."trino.deep".t AS SELECT 1 AS n'), [[1]])
        _views(checks, lake, ask)
        place = f"file://{lake.work}/data/warehouse/main/chosen"
        ask(f"CREATE SCHEMA lake.chosen WITH (location = '{place}')")
        ask("CREATE TABLE lake.chosen.t AS SELECT 1 AS n")
        checks.expect(
            "a location that was chosen", lambda: f"{place}/t-" in str(ask("SHOW CREATE TABLE lake.chosen.t")), True
        )
        checks.expect_refusal(
            "a location elsewhere",
            lambda: ask("CREATE SCHEMA lake.bad WITH (location = 'file:///etc/x')"),
            "outside the catalog's allowed roots",
        )
        checks.expect("DROP TABLE", lambda: [ask(f"DROP TABLE lake.trino.{name}") for name in "tcd"], [[], [], []])
        checks.expect("a reader selects", lambda: ask("SELECT count(*) FROM reading.open.t"), [[2]])
        checks.expect_refusal(
            "a reader may not write", lambda: ask("INSERT INTO reading.open.t VALUES (3, 'x')"), "MODIFY_TABLE"
        )
        checks.expect_refusal(
            "a reader may not create", lambda: ask("CREATE TABLE reading.open.u (id bigint)"), "CREATE_TABLE"
        )
    return checks.made


def _views(checks: Checks, lake: Lake, ask: Callable[[str], list[list[object]]]) -> None:
    """Make, read, replace, rename and drop views; one in another dialect is refused by its name."""
    view = "lake.trino.v"
    checks.expect("CREATE VIEW", lambda: ask(f"CREATE VIEW {view} AS SELECT id, city FROM lake.trino.t"), [])
    checks.expect("a view is read", lambda: ask(f"SELECT city FROM {view} WHERE id = 1"), [["Oslo"]])
    replace = f"CREATE OR REPLACE VIEW {view} AS SELECT city FROM lake.trino.t WHERE id = 2"
    checks.expect("CREATE OR REPLACE VIEW", lambda: ask(replace) + ask(f"SELECT * FROM {view}"), [["Rome"]])
    checks.expect(
        "a deep view", lambda: ask('CREATE VIEW lake."trino.deep".v AS SELECT n FROM lake."trino.deep".t'), []
    )
    checks.expect("a deep view is read", lambda: ask('SELECT * FROM lake."trino.deep".v'), [[1]])
    listed = "SELECT table_name FROM lake.information_schema.views WHERE table_schema = 'trino'"
    checks.expect("views are listed", lambda: ask(listed), [["v"]])
    checks.expect_refusal(
        "a table of a view's name", lambda: ask("CREATE TABLE lake.trino.v (id bigint)"), "already exists"
    )
    make_view(lake, "open", "of_spark", dialect="spark", text="SELECT 1 AS id")
    checks.expect_refusal("a view in Spark's dialect", lambda: ask("SELECT * FROM lake.open.of_spark"), "of_spark")
    checks.expect("rename a view", lambda: ask(f"ALTER VIEW {view} RENAME TO lake.trino.w"), [])
    checks.expect("it is read by its new name", lambda: ask("SELECT * FROM lake.trino.w"), [["Rome"]])
    checks.expect("DROP VIEW", lambda: ask("DROP VIEW lake.trino.w"), [])


def _travel(address: str) -> object:
    first = _rows(address, 'SELECT snapshot_id FROM lake.trino."t$snapshots" ORDER BY committed_at DESC LIMIT 1')[0][0]
    _rows(address, "INSERT INTO lake.trino.t VALUES (3, 'Bern')")
    return _rows(address, f"SELECT count(*) FROM lake.trino.t FOR VERSION AS OF {first}")


@contextmanager
def _server(lake: Lake) -> Iterator[str]:
    home, java = trino_home(), java_25()
    work = lake.work / "trino"
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    _configure(work, lake, home=home, port=port)
    command = [
        str(java),
        "-Xmx1500m",
        "-XX:+UseSerialGC",
        "-Djdk.attach.allowAttachSelf=true",
        "--sun-misc-unsafe-memory-access=allow",
    ]
    command += ["--add-modules=jdk.incubator.vector"] if _has_vector(java) else []
    command += [
        f"-Dconfig={work}/etc/config.properties",
        f"-Dnode.data-dir={work}",
        f"-Dlog.levels-file={work}/etc/log.properties",
    ]
    command += [
        "-Dnode.environment=conformance",
        "-Dnode.id=one",
        "-Dnode.internal-address=127.0.0.1",
        "-Dnode.bind-ip=127.0.0.1",
        "-cp",
        f"{home}/lib/*",
        "io.trino.server.TrinoServer",
    ]
    with (
        (lake.work / "trino.log").open("wb") as log,
        subprocess.Popen(command, stdout=log, stderr=log, cwd=work) as process,
    ):
        try:
            _wait(f"http://127.0.0.1:{port}", process)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


def _configure(work: Path, lake: Lake, *, home: Path, port: int) -> None:
    catalogs = work / "etc" / "catalog"
    catalogs.mkdir(parents=True)
    (work / "etc" / "log.properties").write_text("io.trino=WARN\n")
    settings = [
        "coordinator=true", "node-scheduler.include-coordinator=true", f"http-server.http.port={port}",
        f"discovery.uri=http://127.0.0.1:{port}", f"plugin.dir={home}/plugin", f"catalog.config-dir={catalogs}",
        "query.max-memory-per-node=400MB", "catalog.management=static",
    ]  # fmt: skip
    (work / "etc" / "config.properties").write_text("\n".join(settings) + "\n")
    for name, token in (("lake", lake.admin), ("reading", lake.reader)):
        file = catalogs / f"{name}.properties"
        file.touch(mode=0o600)
        file.write_text(block("Trino", uri=lake.iceberg, token=token))


def _has_vector(java: Path) -> bool:
    listed = subprocess.run([str(java), "--list-modules"], capture_output=True, text=True, check=True).stdout
    return "jdk.incubator.vector" in listed


def _wait(address: str, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + _START_S
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{address}/v1/info", timeout=5) as answer:
                if not json.load(answer)["starting"]:
                    return
        except OSError:
            pass
        time.sleep(1)
    raise RuntimeError("Trino did not start: see its log")


def _rows(address: str, statement: str) -> list[list[object]]:
    """Run a statement to its end; raises with Trino's own words."""
    request = urllib.request.Request(f"{address}/v1/statement", statement.encode(), {"X-Trino-User": "conformance"})
    rows: list[list[object]] = []
    end = time.monotonic() + _STATEMENT_S
    while time.monotonic() < end:
        with urllib.request.urlopen(request, timeout=60) as answer:
            page = json.load(answer)
        if "error" in page:
            causes = [page["error"].get("message"), *_causes(page["error"].get("failureInfo"))]
            raise RuntimeError(" / ".join(str(cause) for cause in causes))
        rows += page.get("data", [])
        if "nextUri" not in page:
            kind = page.get("updateCount")
            return [[kind]] if not rows and kind is not None else rows
        request = urllib.request.Request(page["nextUri"], headers={"X-Trino-User": "conformance"})
    raise RuntimeError(f"Not done within {_STATEMENT_S} s: {statement}")


def _causes(failure: dict[str, object] | None) -> Iterator[object]:
    while failure:
        yield failure.get("message")
        failure = failure.get("cause")  # type: ignore[assignment]
