# SPDX-License-Identifier: Apache-2.0
"""Exports and imports over the admin API: streamed exports, imports in parts, finished and abandoned imports, bad
input.
"""

from __future__ import annotations

import asyncio
import json

import pytest

from limnos.access.authentication import Credential
from limnos.model.errors import ServiceUnavailable
from limnos.rooms.exchange.http import exchange
from limnos.rooms.exchange.services import metalake_export
from limnos.services.request.context import Context
from tests.http.driver import API, OWN, DriverNode
from tests.http.iceberg.wire import make_space, make_table
from tests.http.interference import InterferencePoint, interfere

EXPORT = f"{OWN}/metalakes/lake/export"
IMPORTS = f"{OWN}/imports"


def lines_of(node: DriverNode) -> list[bytes]:
    """Return the export of the lake, line by line."""
    return node.get(f"{EXPORT}?format=json").body.splitlines(keepends=True)


def without_roots(lines: list[bytes]) -> list[bytes]:
    """Return an export whose catalogs state no warehouse, since roots of two metalakes must not overlap."""
    records = [json.loads(line) for line in lines]
    for record in records:
        record.get("catalog", {}).get("properties", {}).pop("warehouse", None)
    return [f"{json.dumps(record)}\n".encode() for record in records]


def test_exported_metalake_is_imported_in_parts(node: DriverNode) -> None:
    """An export can be imported in parts. Each part is answered with the progress; the list shows unfinished imports
    only.
    """
    make_space(node, "a")
    make_space(node, "a", "b")
    answer = node.get(f"{EXPORT}?format=json")
    lines = without_roots(lines_of(node))
    import_response = node.post(IMPORTS, {"name": "copy", "format": "json"})
    one = f"{IMPORTS}/{import_response.json()['id']}"

    assert (answer.status, answer.headers["content-type"]) == (200, "application/x-ndjson")
    assert node.get(EXPORT).headers["content-type"] == "application/x-protobuf"
    assert (
        import_response.status,
        import_response.json()["records"],
        import_response.json()["state"],
        import_response.json()["ids"],
    ) == (
        201,
        0,
        "open",
        "map",
    )
    assert node.post(f"{one}/records?after=0", b"".join(lines[:3])).json()["records"] == 3
    assert node.post(f"{one}/records?after=2", lines[2]).status == 409
    assert node.post(f"{one}/finish").status == 400
    assert node.post(f"{one}/records?after=3", b"".join(lines[3:])).json()["state"] == "whole"
    assert [each["source"] for each in node.get(IMPORTS).json()["imports"]] == ["lake"]
    assert node.post(f"{one}/finish").json() == {"metalake": "copy", "records": len(lines), "masked": []}
    assert node.get(IMPORTS).json() == {"imports": []}
    assert node.get(one).status == 404
    assert node.get("/api/metalakes/copy/catalogs/main/schemas").json()["identifiers"][0]["name"] == "a"


def test_import_with_a_location_in_use_is_refused(node: DriverNode) -> None:
    """An import whose table location is in use is refused with the record's number. The import can then be
    abandoned.
    """
    make_space(node, "a")
    make_table(node, "a", "t")
    lines = lines_of(node)
    one = f"{IMPORTS}/{node.post(IMPORTS, {'name': 'copy', 'format': 'json'}).json()['id']}"
    answer = node.post(f"{one}/records?after=0", b"".join(lines))

    assert answer.status == 400
    number = next(at for at, line in enumerate(lines, 1) if b'"table"' in line)
    assert str(answer.json()["error"]["message"]).startswith(f"Record {number}: Another table is at location")
    assert node.delete(one).status == 200
    assert node.delete(one).status == 404


@pytest.mark.parametrize(
    "method,path,body,message",
    [
        ("GET", f"{EXPORT}?format=xml", None, "proto or json"),
        ("GET", f"{EXPORT}?secrets=perhaps", None, "true or false"),
        ("POST", IMPORTS, {"name": "a b"}, "a b"),
        ("POST", IMPORTS, {"name": "copy", "format": "xml"}, "proto or json"),
        ("POST", IMPORTS, {"name": "copy", "ids": "some"}, "keep or map"),
        ("POST", IMPORTS, {"nam": "copy"}, "nam"),
    ],
)
def test_bad_input_is_400_and_names_the_problem(
    node: DriverNode, method: str, path: str, body: object, message: str
) -> None:
    """Bad input is 400, and the message names the problem."""
    answer = node.ask(method, path, body)

    assert answer.status == 400
    assert message in answer.json()["error"]["message"]


def test_malformed_part_is_400_and_unknown_import_404(node: DriverNode) -> None:
    """A part without a valid position, or with malformed records, is refused with 400. An unknown import is 404."""
    one = f"{IMPORTS}/{node.post(IMPORTS, {'name': 'copy', 'format': 'json'}).json()['id']}"

    for query, body, message in (
        ("", b"", "after must be"),
        ("?after=x", b"", "after must be"),
        ("?after=0", b"{}\n", "Record 1"),
        ("?after=0", b"[]", "Record 1"),
        ("?after=0", b"id,fare\n1,2\n", "which 'limnos export METALAKE' writes"),
    ):
        answer = node.post(f"{one}/records{query}", body)
        assert (answer.status, message in answer.json()["error"]["message"]) == (400, True), answer.body
    for number in ("1", "x", "9" * 30):
        assert node.get(f"{IMPORTS}/{number}").status == 404
    assert node.get(one).json()["records"] == 0


def test_export_beyond_the_concurrency_limit_is_503(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """An export beyond the limit of concurrent exports is refused with 503 and `Retry-After`."""
    monkeypatch.setattr(metalake_export, "_EXPORT_COUNTER", metalake_export.ExportCounter(metalake_export.AT_ONCE_MAX))

    answer = node.get(EXPORT)
    assert (answer.status, answer.json()["error"]["code"]) == (503, "unavailable")
    assert "retry-after" in answer.headers


def test_json_records_have_protobuf_field_names(node: DriverNode) -> None:
    """A record in JSON has the field names of the Protobuf definitions."""
    head, lake = (json.loads(line) for line in lines_of(node)[:2])

    assert head["header"]["metalake"] == "lake"
    assert {"id", "name", "audit_info", "version"} <= set(lake["metalake"])
    assert exchange.ROUTES[0].operation == "export-metalake"


def test_client_disconnect_frees_the_export_slot(node: DriverNode) -> None:
    """Exports whose clients disconnect free their slots, so the next one is served."""
    for number in range(20):
        make_space(node, f"n{number}")

    async def disconnect_after(pieces: int) -> None:
        seen = 0

        def is_gone() -> bool:
            nonlocal seen
            seen += 1
            return seen > pieces

        await node.answer("GET", EXPORT, is_gone=is_gone)

    for pieces in (0, 0, 1, 1, 2, 2):
        node.runner.run(disconnect_after(pieces))

    assert metalake_export._EXPORT_COUNTER.count == 0
    assert node.get(EXPORT).status == 200


def test_closed_export_releases_its_snapshot(node: DriverNode) -> None:
    """A closed export releases its snapshot; one that was never started takes none."""
    ctx = Context(node.built.services, Credential(user="admin"), "x")

    async def story() -> None:
        for _ in range(metalake_export.AT_ONCE_MAX + 1):
            stream = metalake_export.metalake_export(ctx, metalake="lake", form="json")
            await anext(stream)
            await stream.aclose()
        await metalake_export.metalake_export(ctx, metalake="lake", form="json").aclose()

    node.runner.run(story())

    assert metalake_export._EXPORT_COUNTER.count == 0


def test_old_export_releases_its_snapshot(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """An export beyond its age releases its snapshot although its client has not asked for more, who gets no more."""
    monkeypatch.setattr(metalake_export, "AGE_MAX_S", 0.1)
    ctx = Context(node.built.services, Credential(user="admin"), "x")

    async def story() -> list[bytes]:
        stream = metalake_export.metalake_export(ctx, metalake="lake", form="json")
        await anext(stream)
        while metalake_export._EXPORT_COUNTER.count:  # noqa: ASYNC110 - the product has no event for it
            await asyncio.sleep(0.01)
        with pytest.raises(ServiceUnavailable, match="took longer than"):
            await anext(stream)
        return [chunk async for chunk in stream]

    assert node.runner.run(asyncio.wait_for(story(), 30)) == []


def test_export_that_is_old_before_its_first_chunk_is_503(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """An export whose age ends while it reads a page ends after it: before the first one it is 503."""
    monkeypatch.setattr(metalake_export, "AGE_MAX_S", 0.0)

    answer = node.get(EXPORT)

    assert (answer.status, answer.json()["error"]["code"]) == (503, "unavailable")
    assert metalake_export._EXPORT_COUNTER.count == 0
    monkeypatch.undo()
    assert node.get(EXPORT).status == 200


def test_ownership_lost_as_the_export_begins_yields_no_data(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller who loses ownership while the export begins gets no data."""
    owner = f"{API}/lake/owners/METALAKE/lake"
    node.done("POST", f"{API}/lake/users", {"name": "ana"})
    node.done("PUT", owner, {"name": "ana", "type": "USER"})
    assert node.get(EXPORT, user="ana").status == 200

    async def give_up() -> None:
        answer = await node.answer("PUT", owner, {"name": "admin", "type": "USER"}, user="ana")
        assert answer.status == 200, answer

    with interfere(node, monkeypatch, step=InterferencePoint.READ, act=give_up) as interference:
        answer = node.get(EXPORT, user="ana")

    assert interference.is_done
    assert answer.status == 403, answer
    assert metalake_export._EXPORT_COUNTER.count == 0
