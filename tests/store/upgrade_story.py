# SPDX-License-Identifier: Apache-2.0
"""Writes a store of this release, to be kept for upgrade tests: `python -m tests.store.upgrade_story`, once per
release.

Writes `upgrades/VERSION/KIND.sql`, the store as SQL, and `KIND.json`, answers to readers. It does not use migrations.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from conformance.openapi.world import OWN, THINGS
from limnos import __version__
from limnos.app.node_builder import DATABASE_FILE
from tests.backends import PostgresServer, postgres_server
from tests.http.driver import API, DriverNode
from tests.http.iceberg import wire

FOLDER = Path(__file__).with_name("upgrades")
SPACES = "/iceberg/v1/lake.main/namespaces"
LEAVES = f"{API}/lake/catalogs"
LOOKS: tuple[tuple[str, str], ...] = (
    ("owner", API),
    ("owner", f"{API}/lake"),
    ("owner", f"{API}/lake/catalogs?details=true"),
    *(
        ("owner", f"{API}/lake/{what}?details=true")
        for what in ("users", "groups", "roles", "tags", "policies", "jobs/templates")
    ),
    *(
        ("owner", f"{API}/lake/{what}")
        for what in ("users/ana", "groups/crew", "roles/hands", "roles/readers", "owners/CATALOG/main")
    ),
    ("owner", f"{API}/lake/objects/SCHEMA/main.a/tags?details=true"),
    ("owner", f"{LEAVES}/main/schemas/a/functions/f"),
    ("owner", f"{LEAVES}/models/schemas/a/models/churn"),
    ("owner", f"{LEAVES}/models/schemas/a/models/churn/versions/0"),
    ("owner", f"{LEAVES}/files/schemas/a/filesets/f"),
    ("owner", f"{LEAVES}/topics/schemas/a/topics/o"),
    *(
        (user, f"{SPACES}{path}")
        for user in ("owner", "reader", "stranger")
        for path in ("", "/a", "/a/tables", "/a/tables/t", "/a%1Fb/tables/deep")
    ),
    ("owner", f"{SPACES}/a/views/v"),
    ("owner", f"{OWN}/lake/pipelines/flights"),
    ("owner", f"{OWN}/lake/catalogs/main/trash"),
    ("owner", f"{OWN}/lake/groups/crew/members"),
    ("owner", f"{OWN}/lake/objects/TABLE/main.a.t/protection"),
    ("admin", "/api/limnos/v1/tokens"),
)
"""Requests and their callers."""


def tell(node: DriverNode) -> None:
    """Create an object of each kind, a nested namespace, a second version of a table, trash, a protected table, and
    rights.
    """
    for method, path, body in THINGS:
        if node.ask(method, path, body, user="owner").status in (401, 403, 404):
            node.ask(method, path, body)
    space = wire.make_space(node, "a", "b", user="owner", purpose="deep")
    assert space["namespace"] == ["a", "b"]
    wire.make_table(node, "a", "b", "deep", user="owner")
    assert wire.commit(node, "a", "t", updates=[wire.set_properties(season="winter")], user="owner").status == 200
    wire.make_table(node, "a", "gone", user="owner")
    assert node.ask("DELETE", wire.table_path("a", "gone"), user="owner").status == 204
    node.done("POST", f"{OWN}/lake/groups/crew/members", {"users": ["ana"]}, user="owner")
    node.done("PUT", f"{OWN}/lake/objects/TABLE/main.a.t/protection", {}, user="owner")
    node.done("POST", "/api/limnos/v1/tokens", {"name": "laptop"})


def look(node: DriverNode) -> list[dict[str, object]]:
    """Return the answer to each request."""
    answers = []
    for user, path in LOOKS:
        answer = node.get(path, user=user)
        answers.append({"user": user, "path": path, "status": answer.status, "body": answer.json()})
    return answers


def sqlite_dump(data: Path) -> str:
    """Dump the SQLite store of a data directory as SQL."""
    with closing(sqlite3.connect(data / DATABASE_FILE)) as connection:
        return "\n".join(connection.iterdump()) + "\n"


def postgres_dump(server: PostgresServer, address: str) -> str:
    """Dump a PostgreSQL store as SQL, without the commands of its shell."""
    command = [
        server.program("pg_dump"),
        "--inserts",
        "--no-owner",
        "--no-privileges",
        "--no-comments",
        "--dbname",
        address,
    ]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return "\n".join(line for line in text.splitlines() if line and not line.startswith(("\\", "--"))) + "\n"


def write(kind: str, folder: Path, server: PostgresServer | None) -> None:
    """Generate a new store of a kind, and write both files."""
    address = None if server is None else server.empty_database()
    with tempfile.TemporaryDirectory(prefix="limnos-upgrade-") as data:
        with wire.node_over(Path(data), database=address) as node:
            tell(node)
            seen = look(node)
        text = sqlite_dump(Path(data)) if server is None else postgres_dump(server, str(address))
    (folder / f"{kind}.sql").write_text(text, encoding="utf-8")
    (folder / f"{kind}.json").write_text(json.dumps(seen, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main() -> int:
    """Write this release's store on both databases. Refuses to overwrite an existing one."""
    folder = FOLDER / __version__
    if folder.exists():
        sys.stderr.write(f"{folder} is kept as it is: a release has one\n")
        return 1
    folder.mkdir(parents=True)
    with postgres_server() as server:
        write("postgres", folder, server)
    write("sqlite", folder, None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
