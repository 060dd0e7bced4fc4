# SPDX-License-Identifier: Apache-2.0
"""Requests with bodies of nearly 1 MiB: each field of each operation's body is replaced by values that are expensive to
decode or to check.

May import the requests of this package. Must not know the cost of a request.
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from conformance.slowest.requests import SentRequest, first_requests

if TYPE_CHECKING:
    from collections.abc import Iterator

BYTES: Final = (1 << 20) - 4096
PLACES_MAX: Final = 12
"""Maximum number of values of a body that are replaced, one at a time."""
_MARK: Final = "limnos-place"


OWN: Final = {
    "asterix": (SentRequest("POST", "/query/service", {"statement": "select value 1", "args": [1], "$x": {"a": 1}}),)
}
"""Requests in addition to the initial ones of a protocol, whose bodies are statements."""


def _repeated(unit: bytes) -> bytes:
    return b"[" + b",".join([unit] * (BYTES // (len(unit) + 1))) + b"]"


SHAPES: Final[dict[str, bytes]] = {
    "empty lists": _repeated(b"[]"),
    "deep lists": _repeated(b"[" * 60 + b"]" * 60),
    "objects": _repeated(b'{"name":"a"}'),
    "objects in objects": _repeated(b'{"":{}}'),
    "numbers": _repeated(b"1"),
    "words": _repeated(b'"ab"'),
    "keys": b"{" + b",".join(b'"%06x":"v"' % number for number in range(BYTES // 13)) + b"}",
    "text": b'"' + b"a.b/" * (BYTES // 4) + b'"',
    "too deep": b"[" * (BYTES // 2) + b"]" * (BYTES // 2),
}


def long_requests(protocol: str) -> Iterator[tuple[str, SentRequest]]:
    """Yield requests of a protocol, each with the name of its shape and the position that has it."""
    for sent in (*OWN.get(protocol, ()), *first_requests(protocol)):
        if sent.form == "statement" or not isinstance(sent.body, dict):
            continue
        for place, marked in islice(_marked({**sent.body, "zzz": 1}), PLACES_MAX):
            before, _, after = json.dumps(marked).encode().partition(json.dumps(_MARK).encode())
            for shape, value in SHAPES.items():
                yield f"{place}: {shape}", replace(sent, body=before + value + after)


def _marked(value: object) -> Iterator[tuple[str, object]]:
    """Yield a value with one of its parts replaced by the mark: outer parts first, of a list the first element."""
    parts = (
        list(value.items()) if isinstance(value, dict) else [(0, value[0])] if isinstance(value, list) and value else []
    )
    for key, _ in parts:
        yield str(key), _put(value, key, _MARK)
    for key, part in parts:
        for place, marked in _marked(part):
            yield f"{key}.{place}", _put(value, key, marked)


def _put(value: object, key: object, part: object) -> object:
    return {**value, key: part} if isinstance(value, dict) else [part]
