"""JSON bodies: the limit of arrays and objects in long ones."""

from __future__ import annotations

import msgspec
import pytest

from limnos.http.request import CONTAINERS_MAX, Request
from limnos.http.routing import SHORT_BODY_BYTES
from limnos.model.errors import BadRequest

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
