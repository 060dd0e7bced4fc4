# SPDX-License-Identifier: Apache-2.0
"""JSON bodies: the limit of arrays and objects in long ones."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from limnos.http.request import CONTAINERS_MAX, PREFIX_LENGTH, Request, next_request_id
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


def test_ids_are_unique_across_threads() -> None:
    """No id is assigned twice, with any number of threads."""
    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(lambda _: next_request_id(), range(5_000)))

    assert len(set(ids)) == 5_000


def test_ids_are_header_safe_and_sort_by_assignment() -> None:
    """An id is safe in headers and log lines, and the ids of one process sort in the order of their assignment."""
    ids = [next_request_id() for _ in range(300)]

    assert all(re.fullmatch("[0-9a-f]{18,}", each) for each in ids)
    assert ids == sorted(ids)


def test_another_process_has_another_prefix() -> None:
    """Two processes do not share ids."""
    code = "from limnos.http.request import next_request_id; print(next_request_id())"
    other = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()

    assert other[:PREFIX_LENGTH] != next_request_id()[:PREFIX_LENGTH]


def test_a_forked_child_has_another_prefix() -> None:
    """A forked child does not repeat its parent's ids."""
    code = (
        "import os; from limnos.http.request import next_request_id; next_request_id()\n"
        "child = os.fork()\n"
        "if child: os.waitpid(child, 0)\n"
        "print(next_request_id(), flush=True)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    one, other = run.stdout.split()

    assert one[:PREFIX_LENGTH] != other[:PREFIX_LENGTH]
