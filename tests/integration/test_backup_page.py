"""docs/backup.md, carried out: our commands, as they stand there, take a store away and bring it back, on both stores."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

from tests.backends import PostgresServer
from tests.integration.live import LIMNOS
from tests.nodes.process import Process
from tests.nodes.wire import OWN, PREFIX, Wire, namespace_body, namespace_path

PAGE = (Path(__file__).parents[2] / "docs" / "backup.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^    (\S.*)$", PAGE, flags=re.MULTILINE)
ON_SQLITE = ["limnos server backup BACKUP", "limnos server restore BACKUP"]


def carry_out(command: str, names: dict[str, str], *flags: str) -> str:
    """Run a command of the page with its capitals replaced; returns what it printed."""
    words = [names.get(word, word) for word in shlex.split(command)]
    done = subprocess.run([*LIMNOS, *words[1:], *flags], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def make(node: Process, name: str) -> int:
    """Make a namespace on a node that runs; returns the id of a token that was made with it."""
    wire = Wire(node.uri, user="admin")
    wire.do("POST", f"{PREFIX}/namespaces", namespace_body(name))
    found = wire.do("POST", f"{OWN}/tokens", {"name": name}).body["id"]
    wire.close()
    return int(str(found))


def there(node: Process) -> list[int]:
    """Say which of both namespaces is there, by the status of a look at it."""
    wire = Wire(node.uri, user="admin")
    found = [wire.ask("HEAD", namespace_path(name)).status for name in ("before", "after")]
    wire.close()
    return found


def test_every_command_is_carried_out() -> None:
    """The page has no command of ours that no test here runs."""
    assert [each for each in COMMANDS if each not in ON_SQLITE and not each.startswith("pg_")] == [
        "limnos server migrate --restored"
    ]
    assert [each for each in COMMANDS if each in ON_SQLITE] == ON_SQLITE


def test_sqlite(tmp_path: Path) -> None:
    """A backup of a running server is refused its place while that runs, and brought back when it has stopped."""
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
    carry_out(ON_SQLITE[1], names, "--data", str(data))
    node.start()

    assert refused.returncode == 1
    assert "A server uses" in refused.stderr
    assert there(node) == [204, 404]
    node.stop()


def test_postgresql(postgres_server: PostgresServer, tmp_path: Path) -> None:
    """A database that was put back, and told so, is served as it was; its tokens are void.

    The tools that the page names are PostgreSQL's; a copy of the database, made by PostgreSQL, stands in for them here.
    """
    source = postgres_server.empty_database()
    target = f"{source.rpartition('?')[0] or source}".rpartition("/")[2]
    node = Process(tmp_path / "data", log=tmp_path / "log", database=source).start()
    make(node, "before")
    token = node.token

    node.stop()
    postgres_server.admin(f"CREATE DATABASE {target}_back TEMPLATE {target}")
    node.start()
    make(node, "after")
    node.stop()
    back = source.replace(f"/{target}", f"/{target}_back")
    told = carry_out("limnos server migrate --restored", {}, "--database", back, "--data", str(tmp_path / "data"))
    other = Process(tmp_path / "data", log=tmp_path / "log", database=back).start()

    assert "tokens revoked: 2" in told
    assert there(other) == [204, 404]
    wire = Wire(other.uri, token=token)
    assert wire.ask("GET", f"{OWN}/whoami").status == 401
    assert other.token != token
    wire.close()
    other.stop()
