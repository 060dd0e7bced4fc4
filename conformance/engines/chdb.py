"""chDB 4.4 (ClickHouse in a process) as a client of two warehouses, of which one is the default.

Runs its queries in a process of its own, for its wheels are kept apart from ours. May import the room's archives and checks.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

from conformance.engines.archives import wheels
from conformance.engines.checks import Check, Checks, Lake
from conformance.engines.duck import attached
from conformance.engines.page import block
from limnos.client import Client

_RUN_S = 300
_SCRIPT = """
import json, sys
from chdb.session import Session
session = Session()
for query in json.load(sys.stdin):
    try:
        print("=" + json.dumps({"text": str(session.query(query, "CSV"))}))
    except Exception as error:
        print("=" + json.dumps({"error": str(error)}))
"""


def run(lake: Lake) -> list[Check]:
    """Read the default catalog; write and drop through `other`: nothing of the default one may go."""
    with Client(lake.uri, token=lake.admin) as client:
        client.catalogs.create("other", properties={"warehouse": f"file://{lake.work}/data/warehouse/other"})
        client.namespaces.create("other.open")
    main, other = (block("chDB", uri=lake.iceberg, token=lake.admin, catalog=name) for name in ("main", "other"))
    settings = ["SET allow_database_iceberg=1", "SET allow_insert_into_iceberg=1"]
    reads = _answers(lake, [*settings, main, "SELECT id, city FROM lake.`open.t` ORDER BY id"])
    look = "SELECT count(*) FROM lake.`open.t`"
    reader = block("chDB", uri=lake.iceberg, token=lake.reader)
    looks = _answers(lake, [*settings, reader, look])
    with attached(lake.iceberg, lake.admin, catalog="other") as duck:
        duck.execute("CREATE TABLE lake.open.t (id BIGINT, city VARCHAR)")
    insert, drop = "INSERT INTO lake.`open.t` VALUES (7, 'Bern')", "DROP TABLE lake.`open.t`"
    look = "SELECT id, city FROM lake.`open.t`"
    writes = _answers(lake, [*settings, other, insert, look, drop])
    checks = Checks("chDB 4.4.0")
    checks.expect("SELECT", lambda: _taken(reads[-1]), '1,"Oslo"\n2,"Rome"\n')
    checks.expect("INSERT", lambda: _taken(writes[-2]), '7,"Bern"\n')
    checks.expect_refusal("DROP TABLE forgets its prefix", lambda: _taken(writes[-1]), "Without a catalog's prefix")
    checks.expect("the default catalog's table is there still", lambda: _exists(lake), True)
    checks.expect("a reader selects", lambda: _taken(looks[-1]), "2\n")
    return checks.made


def _exists(lake: Lake) -> bool:
    with Client(lake.uri, token=lake.admin) as client:
        return client.tables.exists("main.open.t")


def _taken(answer: dict[str, str]) -> str:
    if "error" in answer:
        raise RuntimeError(answer["error"])
    return answer["text"]


def _answers(lake: Lake, queries: list[str]) -> list[dict[str, str]]:
    """What each query of a session of its own came to, in order. The queries, with the token, go through a pipe."""
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT], input=json.dumps(queries), capture_output=True, text=True, timeout=_RUN_S,
        cwd=lake.work, env={**os.environ, "PYTHONPATH": str(wheels("chdb"))}, check=False,
    )  # fmt: skip
    answers = [json.loads(line[1:]) for line in done.stdout.splitlines() if line.startswith("=")]
    if len(answers) != len(queries):
        raise RuntimeError(f"chDB ended early: {done.stderr[-500:]}")
    return answers
