# SPDX-License-Identifier: Apache-2.0
"""Trino 476 on Java 25, by SQL: one server with a catalog for each caller."""

from __future__ import annotations

import json
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from conformance.engines.archives import TRINO, java_25, trino_home
from conformance.engines.driver import RESTRICTED, Levels, Place, SqlDriver
from conformance.engines.page import block
from conformance.engines.rows import Row
from limnos.model.restrictions import CLOSED_TO

_START_S = 300
_STATEMENT_S = 200
_STOP_S = 20
_LOG_CHARS = 600
"""The number of characters of a log's end in an error."""
_HEADERS = {
    "X-Trino-User": "conformance",
    "X-Trino-Time-Zone": "UTC",
    "X-Trino-Client-Capabilities": "PARAMETRIC_DATETIME",  # otherwise timestamps have milliseconds
}


class Engine(SqlDriver):
    """Trino."""

    title = f"Trino {TRINO.version}"
    section = "Trino"
    dialect = "trino"
    listener = ""
    """Settings of an event listener; none if empty."""
    limits = {  # noqa: RUF012
        "names: dot": "namespaces/a.b-trino/",  # made as two levels: the witness does not find it
        RESTRICTED: CLOSED_TO,
    }
    types = {  # noqa: RUF012
        "long": "BIGINT",
        "string": "VARCHAR",
        "decimal": "DECIMAL(12, 2)",
        "date": "DATE",
        "timestamp": "TIMESTAMP(6)",
        "timestamptz": "TIMESTAMP(6) WITH TIME ZONE",
        "list": "ARRAY(VARCHAR)",
        "struct": "ROW(x BIGINT, label VARCHAR)",
    }

    def start(self, place: Place) -> None:
        super().start(place)
        with closing(socket.create_server(("127.0.0.1", 0))) as free:
            port = free.getsockname()[1]
        self._address = f"http://127.0.0.1:{port}"
        home, java = trino_home(), java_25()
        _configure(place.work, home=home, port=port)
        for caller in place.tokens:
            self._catalog(caller)
        if self.listener:
            file = place.work / "etc" / "event-listener.properties"
            file.touch(mode=0o600)
            file.write_text(self.listener, encoding="utf-8")
        log = (place.work / "trino.log").open("wb")
        with log:
            self._process = subprocess.Popen(_command(place.work, home, java), stdout=log, stderr=log, cwd=place.work)
        self._wait()

    def _catalog(self, caller: str) -> None:
        place = self.place
        settings = block(
            "Trino on S3" if place.is_remote else "Trino",
            uri=place.uri,
            token=place.tokens[caller],
            catalog=place.warehouse,
            store=place.store,
        )
        file = place.work / "etc" / "catalog" / f"{caller}.properties"
        file.touch(mode=0o600)
        file.write_text(settings, encoding="utf-8")

    def stop(self) -> None:
        self._process.kill()
        self._process.wait(timeout=_STOP_S)

    def be(self, caller: str) -> None:
        self.catalog = caller

    def layout(self, *, typed: bool) -> str:
        return " WITH (partitioning = ARRAY['day(at)'])" if typed else ""

    def read_at(self, levels: Levels, name: str, snapshot: int) -> list[Row]:
        return self.ask(f"SELECT id, city FROM {self.table(levels, name)} FOR VERSION AS OF {snapshot}")

    def ask(self, text: str) -> list[Row]:
        """Return the rows of a statement, or the number of changed rows. Raises Trino's own message."""
        request = urllib.request.Request(f"{self._address}/v1/statement", text.encode(), _HEADERS)
        rows: list[Row] = []
        end = time.monotonic() + _STATEMENT_S
        while time.monotonic() < end:
            with urllib.request.urlopen(request, timeout=60) as answer:
                page = json.load(answer)
            if "error" in page:
                causes = [page["error"].get("message"), *_causes(page["error"].get("failureInfo"))]
                raise RuntimeError(" / ".join(dict.fromkeys(map(str, causes))))
            rows += page.get("data", [])
            if "nextUri" not in page:
                changed = page.get("updateCount")
                return [[changed]] if not rows and changed is not None else rows
            request = urllib.request.Request(page["nextUri"], headers=_HEADERS)
        raise RuntimeError(f"Not done within {_STATEMENT_S} s: {text}")

    def _wait(self) -> None:
        end = time.monotonic() + _START_S
        while time.monotonic() < end and self._process.poll() is None:
            try:
                with urllib.request.urlopen(f"{self._address}/v1/info", timeout=5) as answer:
                    if not json.load(answer)["starting"]:
                        return
            except OSError:
                pass
            time.sleep(1)
        self.stop()
        log = (self.place.work / "trino.log").read_text(encoding="utf-8", errors="replace")
        raise RuntimeError(f"Trino did not start: {log[-_LOG_CHARS:]}")


def _configure(work: Path, *, home: Path, port: int) -> None:
    catalogs = work / "etc" / "catalog"
    catalogs.mkdir(parents=True, exist_ok=True)
    (work / "etc" / "log.properties").write_text("io.trino=WARN\n")
    settings = [
        "coordinator=true",
        "node-scheduler.include-coordinator=true",
        f"http-server.http.port={port}",
        f"discovery.uri=http://127.0.0.1:{port}",
        f"plugin.dir={home}/plugin",
        f"catalog.config-dir={catalogs}",
        "query.max-memory-per-node=400MB",
        "catalog.management=static",
    ]
    (work / "etc" / "config.properties").write_text("\n".join(settings) + "\n")


def _command(work: Path, home: Path, java: Path) -> list[str]:
    listed = subprocess.run([str(java), "--list-modules"], capture_output=True, text=True, check=True).stdout
    vectors = ["--add-modules=jdk.incubator.vector"] if "jdk.incubator.vector" in listed else []
    return [
        str(java),
        "-Xmx1500m",
        "-XX:+UseSerialGC",
        "-Djdk.attach.allowAttachSelf=true",
        "--sun-misc-unsafe-memory-access=allow",
        *vectors,
        f"-Dconfig={work}/etc/config.properties",
        f"-Dnode.data-dir={work}",
        f"-Dlog.levels-file={work}/etc/log.properties",
        "-Dnode.environment=conformance",
        "-Dnode.id=one",
        "-Dnode.internal-address=127.0.0.1",
        "-Dnode.bind-ip=127.0.0.1",
        "-cp",
        f"{home}/lib/*",
        "io.trino.server.TrinoServer",
    ]


def _causes(failure: dict[str, object] | None) -> Iterator[object]:
    while failure:
        yield failure.get("message")
        failure = failure.get("cause")  # type: ignore[assignment]
