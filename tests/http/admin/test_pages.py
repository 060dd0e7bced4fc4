# SPDX-License-Identifier: Apache-2.0
"""The first page for people and programs, and the OpenAPI documents as one document."""

from __future__ import annotations

import json
import re
from pathlib import Path

from limnos.http.admin import pages
from tests.http.driver import OWN, DriverNode

FOLDER = Path(__file__).parents[3] / "openapi"
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


def test_root_lists_the_protocol_paths_as_plain_text(node: DriverNode) -> None:
    """The root answers everyone with the paths of the protocols as plain text."""
    answer = node.get("/", user=None)

    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/plain")
    assert all(
        word in answer.body.decode()
        for word in ("/iceberg", "/lance", "/query/service", "/api", OWN, "/metrics", "/openapi.json")
    )


def test_root_without_console_is_html_with_valid_links(node: DriverNode) -> None:
    """Without the console, the root is HTML without scripts with the same links, which work without credentials."""
    node.built.services.defaults = node.built.services.defaults._replace(has_console=False)
    answer = node.get("/", user=None, accept=BROWSER)
    text = answer.body.decode()

    links = re.findall(r'href="([^"]+)"', text)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["vary"] == node.get("/", user=None).headers["vary"] == "accept"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "<script" not in text
    assert "/openapi.json" in links
    assert {link: node.get(link, user=None).status for link in links if "v1/config" not in link} == dict.fromkeys(
        (link for link in links if "v1/config" not in link), 200
    )


def test_the_contracts_are_served_as_one_document(node: DriverNode) -> None:
    """The combined document has each path of the committed documents, valid references and unique operation names."""
    answer = node.get("/openapi.json", user=None)
    text, whole = answer.body.decode(), answer.json()

    paths = {path for file in FOLDER.glob("*.json") for path in json.loads(file.read_text(encoding="utf-8"))["paths"]}
    operations = re.findall(r'"operationId":"([^"]+)"', text)
    assert {file.stem for file in FOLDER.glob("*.json")} == set(pages.CONTRACTS)
    assert set(whole["paths"]) == paths
    assert len(operations) == len(set(operations)) >= len(paths)
    for group, name in set(re.findall(r'"#/components/(\w+)/([^"]+)"', text)):
        assert name in whole["components"][group]


def test_combined_document_is_304_while_unchanged(node: DriverNode) -> None:
    """The document may be cached, must be revalidated, and is 304 while it is unchanged."""
    first = node.get("/openapi.json", user=None)
    again = node.get("/openapi.json", user=None, if_none_match=f'"x", {first.headers["etag"]}')

    assert first.headers["cache-control"] == "public, no-cache"
    assert (again.status, again.body, again.headers["etag"]) == (304, b"", first.headers["etag"])
    assert node.get("/openapi.json", user=None, if_none_match='"x"').status == 200
