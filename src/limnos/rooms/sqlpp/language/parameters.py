# SPDX-License-Identifier: Apache-2.0
"""Parameters of a query service request, as a form or as a JSON object, with limits on their count and their values.

Must not know the meaning of parameters. A body may have 8 MiB, so a worker process parses long ones. It returns the
values as text, which the server decodes only within the limits.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from limnos.names.percent import unquote_form
from limnos.rooms.sqlpp.language.errors import SqlppError

PARAMETERS_MAX: Final = 1_000
"""The maximum number of parameters of a request."""
VALUES_MAX: Final = 50_000
"""The maximum number of values, in arrays and objects, in the parameters of a request: decoding them takes 20 ms."""
BAD_VALUE: Final = 47
BAD_JSON: Final = 48


class EncodedParameter(NamedTuple):
    """A parameter: its name, and its value as text or, for other JSON values, as JSON text."""

    name: str
    text: str
    is_text: bool


def form_parameters(body: bytes) -> list[EncodedParameter]:
    """Parse the parameters of a form, in order. Raises SqlppError, InvalidName."""
    if body.count(b"&") >= PARAMETERS_MAX:
        raise _too_many_error()
    pairs = (pair.partition(b"=") for pair in body.split(b"&") if pair)
    return [EncodedParameter(unquote_form(name), unquote_form(value), is_text=True) for name, _, value in pairs]


def json_parameters(body: bytes) -> list[EncodedParameter]:
    """Parse the parameters of a JSON object. Raises SqlppError for malformed JSON and for another JSON value."""
    try:
        values = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        if len(values) > PARAMETERS_MAX:
            raise _too_many_error()
        encoded = [_encode_parameter(name, bytes(value)) for name, value in values.items()]
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise SqlppError(BAD_JSON, "Unable to process JSON content in request") from None
    check_values(each.text.encode() for each in encoded if not each.is_text)
    return encoded


def _encode_parameter(name: str, value: bytes) -> EncodedParameter:
    if value.startswith(b'"'):
        return EncodedParameter(name, msgspec.json.decode(value, type=str), is_text=True)
    return EncodedParameter(name, value.decode(), is_text=False)


def check_values(texts: Iterable[bytes]) -> None:
    """Check that JSON texts contain at most VALUES_MAX values in total. Raises SqlppError."""
    if sum(text.count(each) for text in texts for each in (b",", b"[", b"{")) > VALUES_MAX:
        raise SqlppError(BAD_VALUE, f"The parameters have more than {VALUES_MAX} values: send less at once")


def _too_many_error() -> SqlppError:
    return SqlppError(BAD_VALUE, f"A request has at most {PARAMETERS_MAX} parameters")
