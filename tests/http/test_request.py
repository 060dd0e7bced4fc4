# SPDX-License-Identifier: Apache-2.0
"""JSON bodies: the limit of arrays and objects in long ones."""

from __future__ import annotations

import gzip

import msgspec
import pytest

from limnos.http.request import CONTAINERS_MAX, Request
from limnos.http.routing import SHORT_BODY_BYTES
from limnos.model.errors import BadRequest
from tests.http.driver import DriverNode

MANY = b"[" + b"[]," * CONTAINERS_MAX + b"1]"
"""An array with the smallest number of arrays that is over the limit."""


@pytest.mark.parametrize(
    "body",
    [b'{"a": ' + MANY + b"}", b'{"a": [{"b": ' + MANY + b"}]}", MANY, b"[" * 200_000, b"[" + b"1," * 200_001 + b"1]"],
)
def test_bodies_of_many_arrays_are_refused(body: bytes) -> None:
    """Bodies with too many arrays or objects, at any place, are refused, because the event loop decodes them."""
    with pytest.raises(BadRequest, match=r"more than 100000 arrays and objects|recursion|truncated"):
        Request.decode(body, object)


@pytest.mark.parametrize("body", [MANY.replace(b"[],", b"", 1), b'{"a": ' + msgspec.json.encode(MANY.decode()) + b"}"])
def test_maximum_number_of_arrays_is_accepted(body: bytes) -> None:
    """The maximum number of arrays is accepted, and brackets in texts do not count."""
    assert len(body) > SHORT_BODY_BYTES
    assert Request.decode(body, object)


@pytest.mark.parametrize(
    "path",
    [
        "/iceberg/v1/lake.main/namespaces",
        pytest.param("/api/metalakes/lake/catalogs/main/schemas", marks=pytest.mark.room("gravitino")),
        "/api/limnos/v1/metalakes/lake/catalogs/main/move",
        pytest.param("/lance/v1/namespace/a/create", marks=pytest.mark.room("lance")),
        pytest.param("/query/service", marks=pytest.mark.room("sqlpp")),
    ],
)
@pytest.mark.parametrize("encoding", ["gzip", "br"])
def test_compressed_body_is_refused_by_each_protocol(node: DriverNode, path: str, encoding: str) -> None:
    """A compressed body is 415 with the accepted encoding (RFC 9110, 15.5.16), and not malformed JSON."""
    body = gzip.compress(b'{"namespace": ["zipped"], "name": "zipped", "statement": "1"}')

    answer = node.ask("POST", path, body, content_encoding=encoding, content_length=str(len(body)))

    assert (answer.status, answer.headers["accept-encoding"]) == (415, "identity")
    assert "without compression" in answer.body.decode()
    assert node.get("/iceberg/v1/lake.main/namespaces").json()["namespaces"] == []


def test_identity_encoding_is_accepted(node: DriverNode) -> None:
    """`identity` is the name of no encoding."""
    body = b'{"namespace": ["a"]}'
    path, length = "/iceberg/v1/lake.main/namespaces", str(len(body))

    assert node.ask("POST", path, body, content_encoding="Identity", content_length=length).status == 200
