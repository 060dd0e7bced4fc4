# SPDX-License-Identifier: Apache-2.0
"""`create`, `describe` and `delete` of objects of declared kinds."""

from __future__ import annotations

from typing import Annotated

import msgspec
import pytest

from limnos.cli.catalog.create import _create_command
from limnos.cli.failures import UsageError
from limnos.model.declared_kinds import DECLARED, DeclaredKind, ObjectFields
from tests.cli.conftest import Run
from tests.cli.test_commands import PAGE
from tests.client.fake import FakeServer

IDS = [each.kind.word for each in DECLARED]


def _url(declared: DeclaredKind) -> str:
    return f"/api/limnos/v1/metalakes/lake/catalogs/main/{declared.plural}/raw"


def _answer(declared: DeclaredKind) -> dict[str, object]:
    return {"name": "x", "path": ["main", "raw", "x"], "comment": "c", "properties": {}, **declared.example}


@pytest.mark.parametrize("declared", DECLARED, ids=IDS)
def test_create_sends_the_own_fields_of_its_flags(fake: FakeServer, limnos: Run, declared: DeclaredKind) -> None:
    """`create <kind>` has a flag for each own field, and sends the values."""
    fake.on("POST", _url(declared), _answer(declared))
    flags = [
        text
        for name, value in declared.example.items()
        for each in (value if isinstance(value, list) else [value])
        for text in ([f"--{name.replace('_', '-')}"] if each is True else [f"--{name.replace('_', '-')}", str(each)])
    ]

    done = limnos("create", declared.kind.word, "main.raw.x", *flags, "--comment", "c")

    assert done.code == 0, done
    (call,) = (each for each in fake.asked if each.body)
    assert isinstance(call.body, dict)
    assert {"name": "x", "comment": "c", **declared.example}.items() <= call.body.items()
    assert isinstance(done.result, dict)
    assert set(declared.example) <= set(done.result)


class NumberFields(ObjectFields, frozen=True):
    """Own fields with bounds."""

    cells: Annotated[int, msgspec.Meta(ge=0, le=1_000, description="The number of cells.")] = 0
    fill_ratio: Annotated[float, msgspec.Meta(gt=0, lt=1, description="The filled part.")] = 0.5


@pytest.mark.parametrize(
    "cells,fill_ratio,message",
    [
        (-1, 0.5, "--cells takes a whole number of at least 0, not -1"),
        (1_001, 0.5, "--cells takes a whole number of at most 1000, not 1001"),
        (1, 0.0, "--fill-ratio takes a number above 0, not 0.0"),
        (1, 1.0, "--fill-ratio takes a number below 1, not 1.0"),
    ],
)
def test_number_out_of_bounds_is_refused_before_a_request(cells: int, fill_ratio: float, message: str) -> None:
    """A number that the type of an own field excludes is refused by the name of its flag, and nothing is sent."""
    declared = DECLARED[0]._replace(fields=NumberFields)
    command = _create_command(declared)

    with pytest.raises(UsageError) as refusal:
        command("main.raw.x", cells=cells, fill_ratio=fill_ratio)

    assert str(refusal.value) == message
    assert refusal.value.hint == f"'limnos create {declared.kind.word} --help' explains its arguments"


@pytest.mark.parametrize("declared", DECLARED, ids=IDS)
def test_describe_and_delete_find_the_kind_of_the_path(fake: FakeServer, limnos: Run, declared: DeclaredKind) -> None:
    """Without `--kind`, `describe` shows the own fields of the object at a path, and `delete` drops it."""
    fake.on("GET", f"{_url(declared)}/x", _answer(declared))
    fake.on("DELETE", f"{_url(declared)}/x", {"dropped": "main.raw.x"})

    described = limnos("describe", "main.raw.x").result
    deleted = limnos("delete", "main.raw.x", "--yes")

    assert isinstance(described, dict)
    assert {"kind": declared.kind.word, **declared.example}.items() <= described.items()
    assert deleted.code == 0
    assert f"DELETE {_url(declared)}/x" in fake.calls


@pytest.mark.parametrize("declared", DECLARED, ids=IDS)
def test_set_changes_comment_and_properties_over_the_own_api(
    fake: FakeServer, limnos: Run, declared: DeclaredKind
) -> None:
    """`set` of an object of a declared kind, which Gravitino's API does not have, sends one change."""
    fake.on("PUT", f"{_url(declared)}/x", _answer(declared))
    words = ["--kind", declared.kind.word, "--property", "a=b", "--remove-property", "c"]

    done = limnos("set", "main.raw.x", *words, "--comment", "d")
    cleared = limnos("set", "main.raw.x", *words[:2], "--comment", "")

    assert (done.code, cleared.code) == (0, 0), done
    assert [each.body for each in fake.asked] == [
        {"comment": "d", "sets": {"a": "b"}, "removes": ["c"]},
        {"clears_comment": True},
    ]


@pytest.mark.parametrize("declared", DECLARED, ids=IDS)
def test_list_of_a_namespace_has_objects_of_the_kind(fake: FakeServer, limnos: Run, declared: DeclaredKind) -> None:
    """`list` of a namespace has objects of declared kinds, too."""
    child = {"kind": declared.kind.word, "name": "x", "path": ["main", "raw", "x"]}
    url = "/api/limnos/v1/metalakes/lake/catalogs/main/children"
    fake.on("GET", f"{url}?path=raw&kind={declared.kind.word}&limit=500", {"children": [child], "more": False})
    catalog = "/iceberg/v1/lake.main/namespaces"
    fake.on("GET", f"{catalog}?parent=raw&{PAGE}", {"namespaces": []})
    for kind in ("tables", "views"):
        fake.on("GET", f"{catalog}/raw/{kind}?{PAGE}", {"identifiers": []})

    done = limnos("list", "main.raw")

    assert done.code == 0, (done.err, fake.calls)
    assert [(row["name"], row["kind"]) for row in done.result] == [("main.raw.x", declared.kind.word)]


def test_a_dashboard_names_objects_of_its_namespace(fake: FakeServer, limnos: Run) -> None:
    """A whole path is sent as the name. A name that nothing has is noted, and one of another namespace is refused."""
    (declared,) = (each for each in DECLARED if each.kind.word == "dashboard")
    children = "/api/limnos/v1/metalakes/lake/catalogs/main/children?path=raw&limit=500"
    fake.on("GET", children, {"children": [{"kind": "table", "name": "t", "path": ["main", "raw", "t"]}]})
    fake.on("POST", _url(declared), _answer(declared))

    created = limnos("create", "dashboard", "main.raw.x", "--tables", "main.raw.t", "--tables", "typo")
    refused = limnos("create", "dashboard", "main.raw.x", "--tables", "main.other.t")

    (body,) = (each.body for each in fake.asked if each.body)
    assert body["tables"] == ["t", "typo"]  # type: ignore[index]
    assert "note: main.raw has no object typo" in created.err
    assert refused.code == 2
    assert "main.other.x" in str(refused.error["hint"])


def test_dashboard_without_link_is_created_and_noted(fake: FakeServer, limnos: Run) -> None:
    """A dashboard may be created before its page exists; a note has the command that sets its URL."""
    (declared,) = (each for each in DECLARED if each.kind.word == "dashboard")
    answer = _answer(declared)
    fake.on("POST", _url(declared), answer)
    linked = limnos("create", "dashboard", "main.raw.x", "--url", "https://charts.example.com/1")
    fake.routes.clear()
    fake.on("POST", _url(declared), {**answer, "url": ""})
    bare = limnos("create", "dashboard", "main.raw.x")

    assert (linked.code, bare.code) == (0, 0)
    assert "'limnos set main.raw.x --field url=URL' sets it" in bare.err
    assert "note" not in linked.err


def test_objects_of_a_declared_kind_are_listed_alone(fake: FakeServer, limnos: Run) -> None:
    """`list dashboards PATH` lists them, as it does tables."""
    each = [{"kind": kind, "name": kind, "path": ["main", "raw", kind]} for kind in ("table", "dashboard")]
    fake.on("GET", "/api/limnos/v1/metalakes/lake/catalogs/main/children?path=raw&limit=500", {"children": each})

    done = limnos("list", "dashboards", "main.raw")

    assert [row["name"] for row in done.result] == ["main.raw.dashboard"]


def test_taken_name_of_a_dashboard_leads_to_its_change(fake: FakeServer, limnos: Run) -> None:
    """The refusal of a dashboard whose name is taken has the command that changes the one that exists."""
    error = {"error": {"code": "already-exists", "message": "Dashboard main.raw.x already exists"}}
    fake.on("POST", "/api/limnos/v1/metalakes/lake/catalogs/main/dashboards/raw", error, status=409)

    done = limnos("create", "dashboard", "main.raw.x", "--url", "https://charts.example.com/1")

    assert "'limnos set main.raw.x --field NAME=VALUE" in done.err


def test_describe_of_a_table_has_its_dashboards(fake: FakeServer, limnos: Run) -> None:
    """`describe` of a table has name and URL of the dashboards that name it."""
    metadata = {"format-version": 2, "location": "/w/t", "schemas": [], "current-schema-id": 0, "properties": {}}
    answer = {"metadata-location": "/w/t/1.json", "metadata": metadata}
    fake.on("GET", "/iceberg/v1/lake.main/namespaces/raw/tables/t?snapshots=refs", answer)
    fake.on("GET", "/iceberg/v1/lake.main/namespaces/raw/tables/t", answer)
    rows = [
        {"name": name, "path": ["main", "raw", name], "url": f"https://charts.example.com/{name}", "tables": [table]}
        for name, table in (("delays", "t"), ("noise", "other"))
    ]
    fake.on("GET", "/api/limnos/v1/metalakes/lake/catalogs/main/dashboards/raw", {"dashboards": rows})

    described = limnos("describe", "main.raw.t", "--kind", "table").result

    assert isinstance(described, dict)
    assert described["dashboards"] == {"delays": "https://charts.example.com/delays"}


@pytest.mark.parametrize("declared", DECLARED, ids=IDS)
@pytest.mark.parametrize("line", ["delete KIND main.raw.x --yes", "show KIND main.raw.x"])
def test_answer_about_deleted_object_names_the_command_that_restores_it(
    fake: FakeServer, limnos: Run, declared: DeclaredKind, line: str
) -> None:
    """If the object of a path was deleted, `delete` and `show` say where it was looked for, and how it comes back."""
    missing = {"error": {"code": "not-found", "message": f"{declared.kind.word.capitalize()} does not exist: raw.x"}}
    trash_item = {
        "id": 7,
        "kind": declared.kind.word,
        "path": ["main", "raw", "x"],
        "dropped_by": "ana",
        "dropped_at": "2026-11-30T09:00:00Z",
        "expires_at": "2026-12-07T09:00:00Z",
    }
    fake.on("GET", f"{_url(declared)}/x", missing, status=404)
    fake.on("DELETE", f"{_url(declared)}/x", missing, status=404)
    fake.on("GET", "/api/limnos/v1/metalakes/lake/catalogs/main/trash?below=raw.x", {"trash": [trash_item]})

    done = limnos(*line.replace("KIND", declared.kind.word).split())

    assert done.code == 3
    assert done.error["message"] == f"{declared.kind.word.capitalize()} does not exist: raw.x in catalog main"
    assert str(done.error["hint"]).startswith("'limnos undrop main.raw.x")
    assert str(done.error["hint"]).endswith(f"restores the {declared.kind.word} that was deleted there")


@pytest.mark.parametrize(
    "typed, sent", [("s3://lake/x=1", {"unknown": "s3://lake/x=1"}), ("raw=s3://lake/x=1", {"raw": "s3://lake/x=1"})]
)
def test_url_alone_is_the_location_of_a_fileset(
    fake: FakeServer, limnos: Run, typed: str, sent: dict[str, str]
) -> None:
    """`create fileset` takes a URL without a name, which may have an equals sign, too."""
    fileset = {"name": "f", "type": "managed", "storageLocations": sent, "properties": {}}
    fake.on("POST", "/api/metalakes/lake/catalogs/files/schemas/s/filesets", {"code": 0, "fileset": fileset})

    done = limnos("create", "fileset", "files.s.f", "--location", typed)

    assert done.code == 0, done.err
    body = fake.asked[-1].body
    assert isinstance(body, dict)
    assert body["storageLocations"] == sent
