# SPDX-License-Identifier: Apache-2.0
"""Requests of every operation with one mistake each: no server error, and always a code that fits the status."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest

from conformance.lance.home import ROWS, stream
from conformance.lance.requests import REQUESTS, ReferenceRequest
from tests.http.driver import DriverAnswer, DriverNode
from tests.http.iceberg.wire import node_over
from tests.rooms.lance.http.wire import declare, make_space

SEED = 11
FIELDS = int(os.environ.get("LIMNOS_TEST_BODIES", "160"))
"""The size of the sample, of some thousands of wrong fields."""
STREAMS = FIELDS // 4
WRONG: tuple[object, ...] = (
    None,
    7,
    -1,
    2**70,
    0.5,
    True,
    "",
    "x" * 5000,
    "\x00",
    "a$b",
    "../..",
    [],
    [None],
    [[["deep"]]],
    {},
    {"a": {"b": 1}},
)
CODES = {
    400: {13, 20},
    401: {16},
    403: {15},
    404: {0, 1, 4, 6, 8, 10, 11, 12, 22},
    405: {0},
    406: {0},
    408: {13},
    413: {13},
    415: {13},
    409: {2, 3, 5, 7, 9, 14, 19, 23},
}
ENDS = ("drop", "deregister", "rename")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DriverNode]:
    """A node with the objects of the requests: tables with rows, a tag, a branch, an index, a declared table; and a
    table that no request names.
    """
    with node_over(tmp_path_factory.mktemp("mutations")) as node:
        for name in ("a", "w", "own"):
            make_space(node, "lance", name)
            node.done("POST", f"/lance/v1/table/lance${name}$t/create", stream())
        declare(node, "lance", "a", "d")
        at = "/lance/v1/table/lance$a$t"
        node.done("POST", f"{at}/tags/create", {"tag": "first", "version": 1})
        node.done("POST", f"{at}/branches/create", {"name": "dev"})
        node.done("POST", f"{at}/create_scalar_index", {"column": "id", "index_type": "BTREE"})
        yield node


def turned(body: dict[str, object]) -> Iterator[dict[str, object]]:
    """Yield variants of the fields: with each field omitted, with each field set to every wrong value, and the same for
    nested fields.
    """
    for name, value in body.items():
        yield {key: each for key, each in body.items() if key != name}
        for wrong in WRONG:
            yield {**body, name: wrong}
        if isinstance(value, dict):
            for inner in turned(value):
                yield {**body, name: inner}
        if isinstance(value, list) and value and isinstance(value[0], dict):
            for inner in turned(value[0]):
                yield {**body, name: [inner]}


def wrong_fields() -> list[ReferenceRequest]:
    """Return a sample of requests with one field changed."""
    every = [
        request._replace(name=f"{request.name} {number}", body=body)
        for request in REQUESTS
        if isinstance(request.body, dict) and not request.path.endswith(ENDS)
        for number, body in enumerate(turned(request.body))
    ]
    assert len(every) > 3000
    return random.Random(SEED).sample(every, min(FIELDS, len(every)))


def wrong_streams() -> Iterator[bytes]:
    """Yield streams with a bit changed, a piece removed, or the end cut off."""
    whole, chance = stream(ROWS.slice(0, 50)), random.Random(SEED)
    for number in range(STREAMS):
        place = chance.randrange(len(whole))
        if number % 4 == 0:
            yield whole[:place]
        elif number % 4 == 1:
            yield whole[:place] + whole[place + 8 :]
        else:
            yield whole[:place] + bytes([whole[place] ^ (1 << chance.randrange(8))]) + whole[place + 1 :]


def is_fine(answer: DriverAnswer) -> bool:
    """Return whether an answer is a success, or a refusal whose code fits its status."""
    if answer.status < 300:
        return True
    return answer.json()["code"] in CODES.get(answer.status, set())


def test_wrong_fields_never_cause_an_internal_error(home: DriverNode) -> None:
    """A request with a wrong field succeeds, or is refused with a code that fits the status."""
    requests = wrong_fields()

    answers = [(each, home.ask(each.method, f"/lance{each.address}", each.body)) for each in requests]

    assert [(each.name, each.body, answer) for each, answer in answers if not is_fine(answer)] == []
    assert sum(answer.status == 400 for _, answer in answers) > len(requests) / 4


def test_damaged_row_streams_never_cause_an_internal_error(home: DriverNode) -> None:
    """Rows with wrong bytes are accepted or refused. A refused body creates no table and no rows."""
    before = home.done("POST", "/lance/v1/table/lance$own$t/count_rows", {})
    answers = [home.post("/lance/v1/table/lance$own$t/insert", data) for data in wrong_streams()]

    assert [answer for answer in answers if not is_fine(answer)] == []
    assert sum(answer.status == 400 for answer in answers) > STREAMS / 4
    inserted_rows = sum(answer.json()["num_inserted_rows"] for answer in answers if answer.status == 200)
    assert home.done("POST", "/lance/v1/table/lance$own$t/count_rows", {}) == before + inserted_rows
