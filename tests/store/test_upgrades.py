# SPDX-License-Identifier: Apache-2.0
"""Upgrades of stores of former releases: each is migrated to the newest schema and served, with all of its content."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest

from limnos import __version__
from limnos.app.node_builder import DATABASE_FILE, build
from limnos.config.server import ServerSection
from limnos.config.settings import DatabaseSection, IcebergSection, Settings, StoreSection
from limnos.store.backends.migrate import migrate
from limnos.store.backends.schema_revisions import current_revision, head_revision
from limnos.store.objects.documents import DAMAGE_PAGE, UNDIGESTED
from tests.http.driver import API, DriverNode
from tests.http.iceberg import wire
from tests.store.upgrade_story import FOLDER, LOOKS

RELEASES = sorted(folder.name for folder in FOLDER.iterdir())
LONG_S = 10**9
Seen = dict[str, object]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.integration)])
def kind(request: pytest.FixtureRequest) -> str:
    """The kind of the store."""
    return str(request.param)


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    """The release that wrote the store."""
    return str(request.param)


@pytest.fixture
def address(request: pytest.FixtureRequest, tmp_path: Path, kind: str, release: str) -> str:
    """The address of a store as the release left it, for the migration."""
    text = (FOLDER / release / f"{kind}.sql").read_text(encoding="utf-8")
    if kind == "sqlite":
        with closing(sqlite3.connect(tmp_path / DATABASE_FILE)) as connection:
            connection.executescript(text)
        return str(tmp_path / DATABASE_FILE)
    database_address = str(request.getfixturevalue("postgres_server").empty_database())
    with psycopg.connect(database_address, autocommit=True) as connection:
        connection.execute(text.encode())
    return database_address


@contextmanager
def served(folder: Path, kind: str, address: str) -> Iterator[DriverNode]:
    """A node on the store. No object of it is old enough to be deleted, and the files of its tables do not exist."""
    settings = Settings(
        server=ServerSection(data=str(folder)),
        database=DatabaseSection.model_validate({"url": None if kind == "sqlite" else address}),
        iceberg=IcebergSection(verify_metadata_file="never"),
        store=StoreSection(change_retention_s=LONG_S, trash_retention_s=LONG_S, run_retention_s=LONG_S),
    )
    with asyncio.Runner() as runner:
        built = build(settings)
        try:
            yield DriverNode(built=built, data=folder, runner=runner)
        finally:
            runner.run(built.close())


def lacking(before: object, after: object, at: str = "") -> list[str]:
    """Return the values of the former answers that are missing or different now. A release may add values, but not
    remove them.
    """
    if isinstance(before, dict) and isinstance(after, dict):
        return [
            difference for key, value in before.items() for difference in lacking(value, after.get(key), f"{at}.{key}")
        ]
    if isinstance(after, list):
        after = [
            each for each in after if not (isinstance(each, dict) and str(each.get("name")).startswith("builtin-"))
        ]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = zip(before, after, strict=True)
        return [difference for n, pair in enumerate(pairs) for difference in lacking(*pair, f"{at}[{n}]")]
    return [] if before == after else [f"{at}: {before!r} is now {after!r}"]


def test_every_release_has_a_committed_store() -> None:
    """For each release a store is committed, written by `python -m tests.store.upgrade_story`."""
    assert __version__ in RELEASES
    assert all(
        (FOLDER / each / f"{kind}.{end}").exists()
        for each in RELEASES
        for kind in ("sqlite", "postgres")
        for end in ("sql", "json")
    )


def test_answers_are_unchanged_after_an_upgrade(tmp_path: Path, kind: str, release: str, address: str) -> None:
    """After the upgrade every request has the same answer as before, including refusals."""
    seen: list[Seen] = json.loads((FOLDER / release / f"{kind}.json").read_text(encoding="utf-8"))

    migrate(address)

    assert current_revision(address) == head_revision()
    assert len(seen) >= len(LOOKS) or release != __version__
    with served(tmp_path, kind, address) as node:
        for each in seen:
            answer = node.get(str(each["path"]), user=str(each["user"]))
            assert (answer.status, lacking(each["body"], answer.json())) == (each["status"], []), each["path"]


def test_upgraded_store_accepts_grants_renames_and_restores(tmp_path: Path, kind: str, address: str) -> None:
    """After the upgrade, grants, renames and restores from the trash work, and new ids and revisions follow the old
    ones.
    """
    migrate(address)

    with served(tmp_path, kind, address) as node:
        main = "/api/limnos/v1/metalakes/lake/catalogs/main"
        deep = wire.table_path("a", "b", "deep")
        assert node.get(deep, user="stranger").status == 403
        node.done("PUT", f"{API}/lake/permissions/users/stranger/grant", {"roleNames": ["readers"]}, user="owner")
        assert node.get(deep, user="stranger").status == 200
        (dropped,) = node.done("GET", f"{main}/trash", user="owner")["trash"]  # type: ignore[misc]
        node.done("POST", f"{main}/trash/{dropped['id']}/undrop", {}, user="owner")
        assert node.get(wire.table_path("a", "gone"), user="owner").status == 200
        moved = {"kind": "namespace", "source": ["a", "b"], "target": ["c"]}
        node.done("POST", f"{main}/move", moved, user="owner")
        assert node.get(wire.table_path("c", "deep"), user="stranger").status == 200
        assert node.delete(wire.table_path("a", "t"), user="owner").status == 409  # it is protected

        body = {
            "name": "new",
            "type": "RELATIONAL",
            "provider": "lakehouse-iceberg",
            "properties": {"warehouse": f"file://{tmp_path}/warehouse/new"},
        }
        node.done("POST", f"{API}/lake/catalogs", body, user="owner")
        root = "/iceberg/v1/lake.new"
        node.done("POST", f"{root}/namespaces", {"namespace": ["n"]}, user="owner")
        node.done("POST", f"{root}/namespaces/n/tables", {"name": "t", "schema": wire.SCHEMA}, user="owner")
        update = {"updates": [wire.set_properties(k="v")]}
        response = node.done("POST", f"{root}/namespaces/n/tables/t", update, user="owner")
        assert response["metadata"]["properties"]["k"] == "v"  # type: ignore[index]


def test_comparison_reports_changed_and_missing_values() -> None:
    """The comparison reports changed and missing values, and ignores new ones."""
    assert lacking({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2, "c": 3}], "d": 4}) == []
    assert lacking({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}) == [".a[1].b: 2 is now 3"]
    assert lacking({"a": 1}, {}) == [".a: 1 is now None"]
    assert lacking([1, 2], [1]) == [": [1, 2] is now [1]"]


def test_documents_of_an_older_release_get_digests(tmp_path: Path, kind: str, address: str) -> None:
    """After the first upkeep of an upgraded store, each document has a digest of its version."""
    with served(tmp_path, kind, address) as node:
        node.runner.run(node.built.upkeep.sweep())
        left = node.runner.run(node.built.services.gate.find((UNDIGESTED, {})))
        digests = node.runner.run(node.built.services.gate.find((DAMAGE_PAGE, {"after": 0, "limit": 100})))

    assert left == []
    assert digests
    assert all(row[6] is not None for row in digests)
