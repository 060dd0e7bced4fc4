# SPDX-License-Identifier: Apache-2.0
"""`records`: exports in a key-value database, by commands that need no server."""

from __future__ import annotations

from pathlib import Path

import pytest

from limnos.client.activity import exchange
from limnos.formats.exchange.encoding import encode_records
from limnos.model.proto.limnos.v1 import export_pb2
from limnos.model.proto.limnos.v1.export_pb2 import ExportRecord
from tests.cli.conftest import Run
from tests.store.key_value_records.test_records import export, namespace, table

LAKE, MAIN = 5, 2


def catalog() -> ExportRecord:
    """Catalog `main` of the export's metalake, with a property."""
    record = ExportRecord()
    record.catalog.id, record.catalog.metalake_id, record.catalog.name = MAIN, LAKE, "main"
    record.catalog.properties["k"] = "v"
    record.owner_id = 30
    return record


@pytest.fixture(params=["lmdb", "sqlite"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a new database, for each kind that needs no server."""
    return f"lmdb:{tmp_path}/lake.records" if request.param == "lmdb" else str(tmp_path / "lake.db")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """An export of a table `main.a.t` beside a namespace of its name, a user and a role with a rule."""
    records = export(
        ExportRecord(principal=export_pb2.Principal(id=30, kind="user", name="ana")),
        catalog(),
        namespace(10, "a"),
        namespace(11, "t", parent=10),
        table(12, "t", parent=10),
        ExportRecord(role=export_pb2.Role(id=20, name="reading")),
        ExportRecord(grant=export_pb2.Grant(role_id=20, object_id=12, privilege="select_table", allowed=True)),
    )
    for record in records:
        word = record.WhichOneof("record") or ""
        if "version" in getattr(record, word).DESCRIPTOR.fields_by_name:
            getattr(record, word).version.major_version = 1
    path = tmp_path / "lake.export"
    path.write_bytes(encode_records(records, "proto"))
    return path


def test_export_round_trip_keeps_all_records(run: Run, place: str, file: Path) -> None:
    """An export is loaded and dumped with all of its records. Loading it again replaces the metalake of that name."""
    first, again = (run("records", "load", place, str(file)) for _ in range(2))

    assert first.result == {"store": place, "metalake": "other", "records": 10, "revision": 1}
    assert (again.code, again.result["revision"]) == (0, 2)
    lines = run("records", "dump", place, "--format", "json").out.splitlines()
    assert len(lines) == 10
    assert '"principal"' in lines[2]
    file.with_suffix(".json").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert run("records", "load", place, str(file.with_suffix(".json"))).result["records"] == 10


def test_records_are_listed_and_shown(run: Run, place: str, file: Path) -> None:
    """Records are listed and described by path. A path of two kinds needs `--kind`. Rules are shown with their role."""
    run("records", "load", place, str(file))

    lake, inner = (run("records", "ls", place, *words).result for words in ((), ("main.a",)))
    assert [(row["kind"], row["name"]) for row in lake] == [("catalog", "main"), ("role", "reading"), ("user", "ana")]
    assert [(row["kind"], row["name"], row["id"]) for row in inner] == [("namespace", "t", 11), ("table", "t", 12)]
    catalog_record = run("records", "describe", place, "main").result
    assert (catalog_record["kind"], catalog_record["properties"], catalog_record["owner_id"]) == (
        "catalog",
        {"k": "v"},
        "30",
    )
    role = run("records", "describe", place, "reading").result
    assert [each["privilege"] for each in role["hanging"]] == ["select_table"]
    assert run("records", "describe", place).result["name"] == "other"
    several = run("records", "describe", place, "main.a.t")
    assert (several.code, several.error["message"]) == (2, "main.a.t is a namespace and a table")
    table_record = run("records", "describe", place, "main.a.t", "--kind", "table").result
    assert (table_record["id"], table_record["columns"][0]["name"]) == ("12", "x")


@pytest.mark.parametrize("number", [2, 5, 8, 10])
def test_error_names_the_number_of_the_wrong_record(
    run: Run, place: str, file: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """The error about a wrong record has its number in the file, in whichever part of the file it is."""
    monkeypatch.setattr(exchange, "RECORDS_AT_ONCE", 3)
    run("records", "load", place, str(file))
    lines = run("records", "dump", place, "--format", "json").out.splitlines()
    lines[number - 1] = '{"unknown": 1}'
    wrong = file.with_suffix(".json")
    wrong.write_text("\n".join(lines) + "\n", encoding="utf-8")

    refused = run("records", "load", place, str(wrong))

    assert refused.code == 2
    assert f"ecord {number} " in f"{refused.error['message']} "


def test_missing_store_path_or_file_is_an_error(run: Run, place: str, file: Path, tmp_path: Path) -> None:
    """Reading a missing store is an error and does not create it. A missing path, a truncated file and a missing file
    are errors, too.
    """
    missing = run("records", "ls", place)
    assert (missing.code, missing.error["code"]) == (3, "not-found")
    assert not Path(place.removeprefix("lmdb:")).exists()
    run("records", "load", place, str(file))
    cut = tmp_path / "cut.export"
    cut.write_bytes(file.read_bytes()[:-3])

    assert run("records", "describe", place, "main.none").error["code"] == "not-found"
    refused = run("records", "load", place, str(cut))
    assert (refused.code, refused.error["code"]) == (2, "bad-request")
    assert run("records", "load", place, str(tmp_path / "none")).code == 2
    assert len(run("records", "ls", place).result) == 3
