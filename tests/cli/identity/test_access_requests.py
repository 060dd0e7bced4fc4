# SPDX-License-Identifier: Apache-2.0
"""`request access`, `list`, `grant` and `decline`: what they send, and how a request is named."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Run
from tests.client.access_calls import REQUEST
from tests.client.fake import FakeServer

URL = "/api/limnos/v1/metalakes/lake/access/requests"
PAGE = f"{URL}?limit=100"
OTHER = {**REQUEST, "id": "3f9b000000000000", "user": "ben"}


def test_request_names_its_object_and_preset(fake: FakeServer, limnos: Run) -> None:
    """A request is sent with the kind of the flag; for an object that the caller does not see it is `table`."""
    fake.on("POST", URL, {"requested": True})

    seen = limnos("request", "access", "main.a", "--kind", "namespace", "--preset", "writer", "--output", "table")
    assert fake.asked[-1].body == {"kind": "namespace", "path": ["main", "a"], "preset": "writer"}
    hidden = limnos("request", "access", "main.a.t")

    assert seen.out == "you asked for writer on namespace main.a; who may grant it sees your request\n"
    assert (hidden.code, fake.asked[-1].body) == (0, {"kind": "table", "path": ["main", "a", "t"], "preset": "reader"})


def test_list_reads_all_pages(fake: FakeServer, limnos: Run) -> None:
    """The list has the requests of all pages; an empty page with a following one does not end it."""
    fake.on("GET", PAGE, {"requests": [], "after": "7.1"})
    fake.on("GET", f"{URL}?after=7.1&limit=100", {"requests": [REQUEST]})

    listed = limnos("list", "requests")

    assert listed.result == [{**REQUEST, "path": "main.a.t"}]


@pytest.mark.parametrize("answer", ["grant", "decline"])
def test_request_is_named_by_a_unique_beginning(fake: FakeServer, limnos: Run, answer: str) -> None:
    """The beginning of an id is enough where it is unique; one of several requests, of none or of three characters is
    not, and nothing is sent.
    """
    fake.on("GET", PAGE, {"requests": [REQUEST, OTHER]})
    fake.on("POST", f"{URL}/answer", {"existed": True, "role": "user:ana"})

    several, short, missing = (limnos(answer, "request", typed) for typed in ("3f9", "3f9-", "abcd"))
    assert (several.code, short.code, missing.code) == (2, 3, 3)
    assert all(call.startswith("GET") for call in fake.calls)
    ambiguous = limnos(answer, "request", REQUEST["id"][:3] + "x")
    done = limnos(answer, "request", "3F9A", "--output", "table")

    assert ambiguous.code == 3
    assert (done.code, fake.asked[-1].body["answer"], fake.asked[-1].body["user"]) == (0, answer, "ana")  # type: ignore[index]
    assert "table main.a.t" in done.out


def test_equal_beginnings_are_listed(fake: FakeServer, limnos: Run) -> None:
    """If several requests begin so, the answer lists their ids."""
    fake.on("GET", PAGE, {"requests": [{**REQUEST, "id": "aaaa000000000001"}, {**OTHER, "id": "aaaa000000000002"}]})

    refused = limnos("grant", "request", "aaaa")

    assert refused.code == 2
    assert "aaaa000000000001, aaaa000000000002" in str(refused.error["message"])
