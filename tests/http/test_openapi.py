# SPDX-License-Identifier: Apache-2.0
"""openapi/: the committed documents match the routes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from limnos.http.route_targets import Protocol
from scripts import generate_openapi
from tests.installed import absent_routes

FOLDER = Path(__file__).parents[2] / "openapi"
PROTOCOLS = generate_openapi.documented_protocols()


def document(protocol: Protocol) -> dict:
    """The committed document of a protocol."""
    return json.loads((FOLDER / f"{protocol.name}.json").read_text(encoding="utf-8"))


def refs(value: object) -> Iterator[str]:
    """Yield every reference in a document."""
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for each in value.values():
            yield from refs(each)
    if isinstance(value, list):
        for each in value:
            yield from refs(each)


@pytest.mark.room("console", "exchange", "gravitino", "jobs", "lance", "maintenance", "pipelines", "search", "sqlpp")
def test_documents_are_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    """The generator's output equals the committed documents byte for byte. Run `make docs` if this fails."""
    code = generate_openapi.main(check=True)

    assert code == 0, capsys.readouterr().out


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.name)
def test_every_route_is_an_operation(protocol: Protocol) -> None:
    """A document has exactly the routes of its protocol with every room."""
    operations = {
        f"{method.upper()} {path}" for path, methods in document(protocol)["paths"].items() for method in methods
    }
    served = {f"{route.method} {protocol.router.root}{route.path}" for route in protocol.router.routes}

    assert operations - absent_routes(protocol.name) == served


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.name)
def test_operations_have_unique_ids_and_valid_references(protocol: Protocol) -> None:
    """Each operation has a unique id, a summary, the parameters of its path and a success response. Every reference is
    valid.
    """
    openapi_document = document(protocol)
    operations = [(path, each) for path, methods in openapi_document["paths"].items() for each in methods.values()]

    ids = [each["operationId"] for _, each in operations]
    assert len(ids) == len(set(ids))
    for path, each in operations:
        named = [parameter["name"] for parameter in each["parameters"] if parameter["in"] == "path"]
        assert each["summary"].endswith("."), path
        assert path.count("{") == len(named)
        assert {"200", "201", "204"} & set(each["responses"])
    for ref in refs(openapi_document):
        target = openapi_document
        for part in ref.removeprefix("#/").split("/"):
            target = target[part]
        assert target, ref


def test_body_schemas_match_their_structs() -> None:
    """The schema of a body is that of the struct that decodes it, with names as sent and required fields marked."""
    openapi_document = document(PROTOCOLS[0])

    body = openapi_document["paths"]["/iceberg/v1/{prefix}/namespaces/{namespace}/register"]["post"]["requestBody"]
    schema = openapi_document["components"]["schemas"]["RegisterTable"]
    assert body["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/RegisterTable"}
    assert schema["required"] == ["name", "metadata-location"]
    assert set(schema["properties"]) == {"name", "metadata-location", "overwrite"}


def test_sign_in_routes_document_their_refusals() -> None:
    """Sign-in routes without credentials document their refusals: 401, 429 and 503."""
    paths = json.loads((generate_openapi.FOLDER / "admin.json").read_text(encoding="utf-8"))["paths"]

    assert {"400", "401", "429", "503"} <= set(paths["/api/limnos/v1/login"]["post"]["responses"])


def test_outdated_document_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The check names a missing or different document, which the generator then writes."""
    monkeypatch.setattr(generate_openapi, "ROOT", tmp_path)
    monkeypatch.setattr(generate_openapi, "FOLDER", tmp_path / "openapi")

    before = generate_openapi.main(check=True)
    output = capsys.readouterr().out
    written = generate_openapi.main(check=False)
    (tmp_path / "openapi" / "admin.json").write_text("{}")

    assert (before, written) == (1, 0)
    assert "openapi/iceberg.json: behind the code" in output
    assert generate_openapi.main(check=True) == 1
