# SPDX-License-Identifier: Apache-2.0
"""msgspec's descriptions of types, built before several threads decode.

msgspec 0.22 builds the description of a struct at its first use, and runs Python code meanwhile. Another thread that
decodes the same type then uses the unfinished description, and the process ends with a segmentation fault. So a process
builds all descriptions before it starts threads that decode; a library, which does not know its threads, decodes by
`json_decoder`, and code that is imported late has decoders as constants of the module, which the import lock protects.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final, TypeVar

import msgspec

T = TypeVar("T")

_LOCK: Final = threading.Lock()
_DECODERS: Final[dict[object, msgspec.json.Decoder[Any]]] = {}


def json_decoder(shape: type[T]) -> msgspec.json.Decoder[T]:
    """Return the decoder of a type, built once. One thread at a time builds one."""
    decoder = _DECODERS.get(shape)
    if decoder is None:
        with _LOCK:
            decoder = _DECODERS.get(shape) or _DECODERS.setdefault(shape, msgspec.json.Decoder(shape))
    return decoder


def build_struct_types() -> None:
    """Build the descriptions of all structs that are imported so far: some 0.1 ms of CPU for each.

    Structs that cannot be decoded are left out, such as those with names that only type checkers import.
    """
    with _LOCK:
        for each in set(_subclasses(msgspec.Struct)):
            with suppress(NameError, TypeError):
                msgspec.json.Decoder(each)


def _subclasses(base: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    for each in base.__subclasses__():
        yield each
        yield from _subclasses(each)
