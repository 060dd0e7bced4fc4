# SPDX-License-Identifier: Apache-2.0
"""The check before a start: what it reports about a store. `test_sealing_keys` has the tests of missing keys."""

from __future__ import annotations

import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from limnos.app.node_builder import open_store
from limnos.app.server import migrate
from limnos.app.server_checks import check, startup_notes
from limnos.config.settings import DatabaseSection, Settings
from limnos.config.storage import StorageSection
from limnos.model.errors import CannotStart, StartWarning
from limnos.model.kinds import ROOT_ID, Kind
from tests.app.test_sealing_keys import settings_of
from tests.backends import PostgresServer
from tests.formats.iceberg.samples import appended
from tests.http.driver import node_at
from tests.store.backends.test_sqlite_errors import zero_root_page

LAKE_ID = 7


def insert(file: sqlite3.Connection, table: str, **values: object) -> None:
    """Insert a row. Columns that are not given are zero, and empty bytes in a record."""
    names = [each[1] for each in file.execute(f"PRAGMA table_info({table})")]
    row = {"record": b"", "created_by": "admin", "format": "", "external_id": None} | values
    file.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(names))})", [row.get(name, 0) for name in names])


def test_check_warns_of_user_names_that_are_now_refused(tmp_path: Path) -> None:
    """User names of an older release that this release would refuse, because of a forbidden character or a similar
    name, are reported as warnings, with escapes, reason and advice.
    """
    settings = settings_of(tmp_path)
    migrate(settings)
    with closing(sqlite3.connect(tmp_path / "limnos.db")) as file, file:
        insert(file, "node", id=LAKE_ID, parent_id=ROOT_ID, kind=int(Kind.METALAKE), space="metalake", name="lake")
        for number, name in enumerate(("ana", "admin\u200b", "adm\u0131n")):
            insert(file, "principal", id=10 + number, metalake_id=LAKE_ID, kind=int(Kind.USER), name=name)

    start_warnings = check(settings)

    assert all(isinstance(each, StartWarning) for each in start_warnings)
    assert [(each.message, each.why.partition(" (")[0]) for each in start_warnings] == [
        (
            r"The name of user 'admin\u200b' of metalake lake would be refused by this release",
            "U+200B is not allowed in it",
        ),
        (r"The name of user 'adm\u0131n' of metalake lake would be refused by this release", "it looks like admin"),
    ]
    assert all("add a user with another name" in each.advice for each in start_warnings)


def test_check_of_a_missing_directory_creates_nothing(tmp_path: Path) -> None:
    """A check writes nothing that stays, and says that there is no store, because the directory may be misspelled."""
    settings = settings_of(tmp_path / "new")

    assert check(settings) == []
    assert list(tmp_path.iterdir()) == []
    assert any("there is no store" in note for note in startup_notes(settings))


def test_check_warns_of_renamed_metalakes_of_the_settings(tmp_path: Path) -> None:
    """Metalakes that settings name, and that were renamed, are reported; other renamed ones are not."""
    settings = settings_of(tmp_path)
    migrate(settings)
    names = {7: ("lake", "pond"), 8: ("prod", "former"), 9: ("same", "same")}
    with closing(sqlite3.connect(tmp_path / "limnos.db")) as file, file:
        for number, (name, now) in names.items():
            place = {"parent_id": ROOT_ID, "kind": int(Kind.METALAKE), "name_space": "metalake"}
            insert(file, "node", id=number, name=now, **place)
            file.execute("INSERT INTO setting_name VALUES (?, ?)", (number, name))

    (warning,) = check(settings)

    assert isinstance(warning, StartWarning)
    assert warning.message == "The metalake that was created as lake has the name pond"
    assert warning.advice.startswith("set server.metalake to pond")


@pytest.mark.parametrize("table", ["document", "access_grant", "change"])
def test_check_names_a_damaged_table(tmp_path: Path, table: str) -> None:
    """A table whose first page was overwritten is reported with what to do, and a start does not open the store."""
    settings = settings_of(tmp_path)
    migrate(settings)
    zero_root_page(tmp_path / "limnos.db", table)

    (damage,) = check(settings)

    assert not isinstance(damage, StartWarning)
    assert damage.message.endswith(f"is damaged: table {table}")
    assert "limnos server restore" in damage.advice
    with pytest.raises(CannotStart, match=f"is damaged: table {table}"):
        open_store(settings)


def test_check_names_a_damaged_document(tmp_path: Path) -> None:
    """A document that is not what was written is reported by the id of its object; the store itself can be opened."""
    settings = settings_of(tmp_path)
    migrate(settings)
    with closing(sqlite3.connect(tmp_path / "limnos.db")) as file, file:
        row = (7, 1, "uuid", "file:/w/t", "file:/w/t/m", b"{}", (1 << 32) - (1 << 63))
        file.execute("INSERT INTO document VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    (damage,) = check(settings)

    assert damage.message.endswith("is damaged: the metadata of object 7")


def test_check_warns_of_documents_that_readers_refuse(tmp_path: Path) -> None:
    """Tables and views of an older release that some readers refuse are named, with the reason and what to do."""
    settings = settings_of(tmp_path)
    migrate(settings)
    readable = appended(1)
    column = {"id": 1, "name": "a", "required": False, "type": "int", "write-default": None}
    unreadable = {**readable, "schemas": [{"schema-id": 0, "type": "struct", "fields": [column]}]}
    lost = {**readable, "refs": {"b": {"type": "tag", "snapshot-id": 9}}, "current-snapshot-id": -1}
    view = {"view-uuid": "no", "format-version": 1}
    documents = {"t": readable, "nulls": unreadable, "lost": lost, "v": view, "odd": "no"}
    with closing(sqlite3.connect(tmp_path / "limnos.db")) as file, file:
        insert(file, "node", id=LAKE_ID, parent_id=ROOT_ID, kind=int(Kind.METALAKE), space="metalake", name="lake")
        for number, (name, body) in enumerate(documents.items(), 20):
            insert(file, "node", id=number, parent_id=LAKE_ID, kind=int(Kind.TABLE), space="table", name=name)
            row = {"node_id": number, "version": 1, "uuid": name, "location": name, "metadata_location": name}
            insert(file, "document", **row, body=msgspec.json.encode(body), digest=None)

    start_warnings = check(settings)

    assert all(isinstance(each, StartWarning) for each in start_warnings)
    assert [(each.message, each.advice.partition(" (")[0]) for each in start_warnings] == [
        ("Some readers refuse lake.nulls", "'limnos table mend' corrects it without losing anything"),
        ("Some readers refuse lake.lost", "remove reference 'b'"),
        ("Some readers refuse lake.v", "drop the view and create it again"),
        ("Some readers refuse lake.odd", "register the table again with another metadata file"),
    ]
    assert "write-default is null" in start_warnings[0].why


def test_check_leaves_out_lance_tables(tmp_path: Path) -> None:
    """A Lance table has no metadata file, and no reader of Iceberg loads it."""
    settings = settings_of(tmp_path)
    migrate(settings)
    with closing(sqlite3.connect(tmp_path / "limnos.db")) as file, file:
        insert(file, "node", id=LAKE_ID, parent_id=ROOT_ID, kind=int(Kind.METALAKE), space="metalake", name="lake")
        insert(file, "node", id=20, parent_id=LAKE_ID, kind=int(Kind.TABLE), space="table", name="items")
        row = {"node_id": 20, "version": 1, "uuid": "u", "location": "l", "metadata_location": ""}
        insert(file, "document", **row, body=b"{}", digest=None)

    assert check(settings) == []


def test_check_warns_of_more_workers_than_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More server processes than cores are named before a start, with a number that fits."""
    settings = settings_of(tmp_path)
    migrate(settings)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    many = settings.server.model_copy(update={"workers": 3})

    (warning,) = check(settings.model_copy(update={"server": many}))

    assert (warning.message, warning.advice) == (
        "3 workers are more than the 2 cores of this machine",
        "set --workers 2, or less",
    )


def test_allowed_root_is_not_enough_for_catalogs_of_the_former_warehouse(tmp_path: Path) -> None:
    """A catalog without a location of its own has the directory of its id in the warehouse, which `--allow-root` does
    not change: the check still names `--warehouse`.
    """
    first, second = tmp_path / "first", tmp_path / "second"
    with node_at(first) as node:
        sales = {"name": "sales", "type": "RELATIONAL", "provider": "lakehouse-iceberg", "properties": {}}
        node.done("POST", "/api/metalakes/lake/catalogs", sales)
    shutil.copytree(first, second)
    former = f"file://{first}/warehouse"

    (warning,) = check(settings_of(second, allowed_roots=former))

    assert isinstance(warning, StartWarning)
    assert "/main" not in warning.message
    assert warning.advice == f"start the server with --warehouse {former}"
    assert check(settings_of(second, warehouse=former)) == []


def test_check_names_the_warehouse_beside_other_roots(tmp_path: Path) -> None:
    """Of catalogs in the former warehouse and of one elsewhere, both flags are named: the warehouse, and the root."""
    first, second, elsewhere = tmp_path / "first", tmp_path / "second", f"file://{tmp_path}/legacy"
    with node_at(first, storage=StorageSection(allowed_roots=(elsewhere,))) as node:
        place = {"warehouse": elsewhere}
        old = {"name": "old", "type": "RELATIONAL", "provider": "lakehouse-iceberg", "properties": place}
        node.done("POST", "/api/metalakes/lake/catalogs", old)
    shutil.copytree(first, second)

    (warning,) = check(settings_of(second))

    assert isinstance(warning, StartWarning)
    expected = f"start the server with --warehouse file://{first}/warehouse --allow-root {elsewhere}"
    assert warning.advice == expected


def test_check_warns_of_catalogs_outside_of_the_allowed_roots(tmp_path: Path) -> None:
    """A store that was moved to another data directory is reported with the root that its catalogs need. With this root
    allowed, and in its own directory, nothing is reported.
    """
    first, second = tmp_path / "first", tmp_path / "second"
    with node_at(first):
        pass
    shutil.copytree(first, second)
    needed = f"file://{first}/warehouse"

    (warning,) = check(settings_of(second))

    assert isinstance(warning, StartWarning)
    assert f"{needed}/main" in warning.message
    assert warning.advice == f"start the server with --warehouse {needed}"
    assert check(settings_of(second, warehouse=needed)) == check(settings_of(first)) == []


@pytest.mark.integration
def test_check_names_an_empty_database_and_what_creates_its_tables(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    """An empty database is reported: to a user who may create tables as a warning, to the user of a node, who may not,
    as an error. Both say what to run; after it, neither is reported.
    """
    address = postgres_server.empty_database()
    postgres_server.admin("DROP ROLE IF EXISTS limnos_node", "CREATE ROLE limnos_node LOGIN")
    owner, node = (database_settings(tmp_path, url) for url in (address, as_user(address, "limnos_node")))

    (warning,), (problem,) = check(owner), check(node)
    migrate(owner)

    assert isinstance(warning, StartWarning)
    assert not isinstance(problem, StartWarning)
    for each in (warning, problem):
        assert each.message.endswith("has no tables")
        assert "limnos server migrate" in each.advice
    assert "may not create tables" in problem.why
    assert check(owner) == []
    assert "has no tables" not in str(check(node))


def database_settings(data: Path, url: str) -> Settings:
    """Return settings of a node on a database."""
    settings = settings_of(data)
    return settings.model_copy(update={"database": DatabaseSection.model_validate({"url": url})})


def as_user(url: str, user: str) -> str:
    """Return a database's URL with another user."""
    return re.sub(r"//[^@/]*@", f"//{user}@", url)
