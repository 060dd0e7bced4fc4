# SPDX-License-Identifier: Apache-2.0
"""`limnos export` piped into `limnos import` as a user types it: two real servers and two processes."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest

from tests.integration.live import LIMNOS, LiveServer, serving
from tests.integration.test_pyiceberg import basic, connect
from tests.nodes.wire import (
    GRAVITINO,
    PREFIX,
    Wire,
    namespace_body,
    namespace_path,
    rights_body,
    rights_path,
    table_body,
)

pytestmark = pytest.mark.room("exchange")

Record = dict[str, dict[str, object]]
ROWS = [{"id": 1}, {"id": 2}]
MANY = 300
"""Number of topics, so that records need more than one part."""


class Pair(NamedTuple):
    """A server with a metalake, and an empty one."""

    old: LiveServer
    new: LiveServer


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Two servers; the second may read the files of the first."""
    folder = tmp_path_factory.mktemp("pair")
    with (
        serving(folder / "old") as old,
        serving(folder / "new", "--bare", "--allow-root", str(old.data / "warehouse")) as new,
    ):
        fill(old)
        yield Pair(old, new)


def fill(server: LiveServer) -> None:
    """Create a table with rows that ana may read by a role, and a tag, a model, a view and topics."""
    with closing(Wire(server.uri, token=server.token)) as admin, closing(connect(server)) as catalog:
        admin.do("POST", f"{PREFIX}/namespaces", namespace_body("a", "b"))
        admin.do("POST", f"{namespace_path('a', 'b')}/tables", table_body("t"))
        schema = pa.schema([pa.field("id", pa.int64(), nullable=False)])
        catalog.load_table(("a", "b", "t")).append(pa.Table.from_pylist(ROWS, schema=schema))
        admin.do("POST", f"{GRAVITINO}/users", {"name": "ana"})
        admin.do("POST", f"{GRAVITINO}/roles", {"name": "reading", "properties": {}, "securableObjects": []})
        admin.do("PUT", f"{GRAVITINO}/permissions/users/ana/grant", {"roleNames": ["reading"]})
        rights = rights_body("use_catalog", "use_schema", "select_table")
        admin.do("PUT", rights_path("reading", "catalog", "main", "grant"), rights)
        admin.do("POST", f"{GRAVITINO}/tags", {"name": "secret", "properties": {"k": "v"}})
        admin.do("POST", f"{GRAVITINO}/objects/table/main.a:b.t/tags", {"tagsToAdd": ["secret"]})
        for kind, name in (("model", "ml"), ("messaging", "bus")):
            admin.do("POST", f"{GRAVITINO}/catalogs", {"name": name, "type": kind, "properties": {}})
            admin.do("POST", f"{GRAVITINO}/catalogs/{name}/schemas", {"name": "s", "properties": {}})
        admin.do("POST", f"{GRAVITINO}/catalogs/ml/schemas/s/models", {"name": "m", "properties": {}})
        version = {"uri": "s3://models/m/1", "aliases": ["best"], "properties": {}}
        admin.do("POST", f"{GRAVITINO}/catalogs/ml/schemas/s/models/m/versions", version)
        for number in range(MANY):
            admin.do("POST", f"{GRAVITINO}/catalogs/bus/schemas/s/topics", {"name": f"topic{number}", "properties": {}})


def environment(server: LiveServer) -> dict[str, str]:
    """Return the environment variables that name the server and the user of a command."""
    variables = {name: value for name, value in os.environ.items() if not name.upper().startswith("LIMNOS")}
    return variables | {"LIMNOS_URI": server.uri, "LIMNOS_TOKEN_FILE": str(server.data / "admin.token")}


def run_cli(server: LiveServer, *words: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run a command."""
    return subprocess.run(
        [*LIMNOS, *words], input=stdin, env=environment(server), capture_output=True, timeout=120, check=False
    )


def piped(pair: Pair, *words: str, format: str) -> subprocess.CompletedProcess[bytes]:
    """Run `limnos export lake | limnos import -`, each with its server."""
    export = [*LIMNOS, "export", "lake", "--format", format]
    with subprocess.Popen(export, stdout=subprocess.PIPE, env=environment(pair.old)) as source:
        done = subprocess.run(
            [*LIMNOS, "import", "-", *words],
            stdin=source.stdout,
            env=environment(pair.new),
            capture_output=True,
            timeout=120,
            check=False,
        )
        if source.stdout is not None:
            source.stdout.close()
    assert source.returncode == 0, done.stderr
    return done


def records(server: LiveServer, metalake: str) -> list[Record]:
    """Return all records of a metalake's export, as JSON."""
    done = run_cli(server, "export", metalake, "--format", "json")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def copied(pair: Pair) -> Pair:
    """The servers, with a copy of the metalake that has the original ids."""
    done = piped(pair, "--as", "copy", "--ids", "keep", format="proto")
    assert done.returncode == 0, done.stderr
    return pair


def test_export_of_an_imported_copy_has_the_same_records(copied: Pair) -> None:
    """With ids kept, the export of the copy has the same records, except for the metalake's name and the header's
    time.
    """
    pair = copied
    old, new = records(pair.old, "lake"), records(pair.new, "copy")
    assert len(old) == len(new) > MANY
    assert [list(record) for record in old] == [list(record) for record in new]
    assert old[1]["metalake"] | {"name": "copy"} == new[1]["metalake"]
    assert old[2:] == new[2:]


def test_copy_keeps_roles_and_rows(copied: Pair) -> None:
    """In a copy ana reads the rows by her role, and another user does not. A second copy is refused, because its
    locations are taken.
    """
    pair = copied
    done = piped(pair, "--as", "mapped", format="json")

    assert done.returncode != 0, "two tables have the same location"
    assert b"lies" in done.stderr or b"location" in done.stderr, done.stderr
    import_match = re.search(rb"import (\d+) is open", done.stderr)
    assert import_match is not None, done.stderr
    assert run_cli(pair.new, "import", "--give-up", import_match[1].decode(), "--yes").returncode == 0
    with closing(connect(pair.new, **{"warehouse": "copy/main", **basic("ana")})) as catalog:
        assert catalog.load_table(("a", "b", "t")).scan().to_arrow().to_pylist() == ROWS
    with closing(Wire(pair.new.uri, user="eve")) as eve:
        assert eve.ask("GET", "/iceberg/v1/copy.main/namespaces/a%1Fb/tables/t").status == 403


def test_import_of_a_truncated_file_can_be_resumed(tmp_path: Path) -> None:
    """The import of a truncated export is refused with its number; resuming it with the complete file finishes it, and
    the metalake exists.
    """
    with (
        serving(tmp_path / "old") as old,
        serving(tmp_path / "new", "--bare", "--allow-root", str(old.data / "warehouse")) as new,
    ):
        fill(old)
        whole = run_cli(old, "export", "lake").stdout
        cut = run_cli(new, "import", "-", "--as", "copy", stdin=whole[: len(whole) * 9 // 10])
        import_match = re.search(rb"import (\d+) is open", cut.stderr)
        assert cut.returncode != 0
        assert import_match is not None, cut.stderr
        file = tmp_path / "lake.export"
        file.write_bytes(whole)
        assert run_cli(new, "export", "copy").returncode != 0

        done = run_cli(new, "import", str(file), "--resume", import_match[1].decode())

        assert done.returncode == 0, done.stderr
        assert len(records(new, "copy")) == len(records(old, "lake"))
