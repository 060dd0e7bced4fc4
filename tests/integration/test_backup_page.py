# SPDX-License-Identifier: Apache-2.0
"""The commands of docs/guides/backup.md, executed as written: they back up a store and restore it, on both stores."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.backends import PostgresServer
from tests.integration.live import LIMNOS
from tests.nodes.process import Process
from tests.nodes.wire import OWN, PREFIX, Wire, namespace_body, namespace_path

PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "backup.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^    (\S.*)$", PAGE, flags=re.MULTILINE)
ON_SQLITE = ["limnos server backup BACKUP", "limnos server restore BACKUP"]
ON_POSTGRESQL = [
    "pg_dump --format=custom --file=BACKUP DATABASE",
    "pg_restore --no-owner --dbname=DATABASE BACKUP",
    "limnos server migrate --restored",
]


def carry_out(command: str, names: dict[str, str], *flags: str) -> str:
    """Run a command of the page with its placeholders replaced; returns its output."""
    words = [names.get(word, word) for word in shlex.split(command)]
    done = subprocess.run([*LIMNOS, *words[1:], *flags], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def postgresql(server: PostgresServer, command: str, names: dict[str, str]) -> None:
    """Run a command of PostgreSQL, by the program of the server's version."""
    program, *words = [names.get(word, word) for word in shlex.split(command)]
    done = subprocess.run([server.program(program), *words], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, ""), command


def make(node: Process, name: str) -> int:
    """Create a namespace on a running node; returns the id of a token that was created with it."""
    wire = Wire(node.uri, user="admin")
    wire.do("POST", f"{PREFIX}/namespaces", namespace_body(name))
    token_id = wire.do("POST", f"{OWN}/tokens", {"name": name}).body["id"]
    wire.close()
    return int(str(token_id))


def namespace_statuses(node: Process) -> list[int]:
    """Return the statuses of a request for each of both namespaces."""
    wire = Wire(node.uri, user="admin")
    statuses = [wire.ask("HEAD", namespace_path(name)).status for name in ("before", "after")]
    wire.close()
    return statuses


def test_every_command_of_the_page_is_tested() -> None:
    """The tests here run every command of the page."""
    assert COMMANDS == ON_SQLITE + ON_POSTGRESQL


def test_sqlite_backup_is_restored_only_after_server_stop(tmp_path: Path) -> None:
    """A backup cannot be restored over a running server's store; after the server has stopped, it is restored."""
    data, names = tmp_path / "data", {"BACKUP": str(tmp_path / "b.db")}
    node = Process(data, log=tmp_path / "log").start()
    make(node, "before")

    carry_out(ON_SQLITE[0], names, "--data", str(data))
    make(node, "after")
    refused = subprocess.run(
        [*LIMNOS, "server", "restore", names["BACKUP"], "--data", str(data)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    node.stop()
    restored = carry_out(ON_SQLITE[1], names, "--data", str(data))
    node.start()

    assert refused.returncode == 1
    assert "A server uses" in refused.stderr
    assert namespace_statuses(node) == [204, 404]
    assert "a query of docs/guides/backup.md lists from the previous store" in restored
    node.stop()


def test_query_of_the_page_lists_later_revocations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The query of the page lists the privileges and memberships that users lost since the backup, and revoked
    tokens, from the replaced store.
    """
    data, names = tmp_path / "data", {"BACKUP": str(tmp_path / "b.db")}
    node = Process(data, log=tmp_path / "log").start()
    wire = Wire(node.uri, user="admin")
    metalake, own = "/api/metalakes/lake", f"{OWN}/metalakes/lake"
    preset = {"preset": "reader", "kind": "catalog", "path": ["main"], "user": "ana"}
    wire.do("POST", f"{metalake}/users", {"name": "ana"})
    wire.do("POST", f"{metalake}/groups", {"name": "staff"})
    wire.do("POST", f"{own}/groups/staff/members", {"users": ["ana"]})
    wire.do("POST", f"{own}/access/presets", {"change": "grant", **preset})
    token_id = wire.do("POST", f"{OWN}/tokens", {"name": "t"}).body["id"]
    carry_out(ON_SQLITE[0], names, "--data", str(data))
    wire.do("POST", f"{own}/access/presets", {"change": "revoke", **preset})
    wire.do("DELETE", f"{own}/groups/staff/members/ana")
    wire.do("DELETE", f"{OWN}/tokens/{token_id}")
    wire.close()
    node.stop()
    carry_out(ON_SQLITE[1], names, "--data", str(data))
    (replaced,) = [each for each in data.glob("limnos.db.replaced-*") if each.name[-1].isdigit()]
    program = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1]  # type: ignore[index]

    exec(re.sub(r"limnos-data/limnos.db.replaced-[0-9]+", str(replaced), program), {})

    lines = capsys.readouterr().out
    assert "revoke user:ana no longer allow SELECT_TABLE on catalog main" in lines
    assert "leave ana group staff" in lines
    assert "revoke admin" in lines
    assert "allow" not in lines.replace("no longer allow", "")


def test_postgresql_dump_is_restored_unchanged(postgres_server: PostgresServer, tmp_path: Path) -> None:
    """A dump of a running server's database, restored into an empty database, is served unchanged; its tokens are
    invalid.
    """
    source, back = postgres_server.empty_database(), postgres_server.empty_database()
    dump = str(tmp_path / "dump")
    node = Process(tmp_path / "data", log=tmp_path / "log", database=source).start()
    make(node, "before")
    token = node.token

    postgresql(postgres_server, ON_POSTGRESQL[0], {"--file=BACKUP": f"--file={dump}", "DATABASE": source})
    make(node, "after")
    node.stop()
    postgresql(postgres_server, ON_POSTGRESQL[1], {"--dbname=DATABASE": f"--dbname={back}", "BACKUP": dump})
    output = carry_out(ON_POSTGRESQL[2], {}, "--database", back, "--data", str(tmp_path / "data"))
    other = Process(tmp_path / "data", log=tmp_path / "log", database=back).start()

    assert "tokens revoked: 2" in output
    assert namespace_statuses(other) == [204, 404]
    wire = Wire(other.uri, token=token)
    assert wire.ask("GET", f"{OWN}/whoami").status == 401
    assert other.token != token
    wire.close()
    other.stop()
