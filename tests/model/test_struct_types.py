# SPDX-License-Identifier: Apache-2.0
"""Descriptions of structs are complete before threads decode: an unfinished one ends the process."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from limnos.model import struct_types

NO_MORE = """
import msgspec._utils as utils
def refuse(obj):
    raise NameError(f"the description of {obj} is built late")
utils.get_class_annotations.__code__ = refuse.__code__
"""
"""Makes msgspec fail if it builds the description of one more struct."""

ENGINE = """
from limnos.rooms.sqlpp.language.jobs import EngineJob, decode, encode
job = EngineJob(
    id="1", kind="query", plan=b"", slots=0, reads=(), target=None, returning=None, returning_slots=0, credential="",
    deadline_ms=1, user="",
)
"""
IMPORTED = """
import msgspec
import limnos.app.serving
from limnos.model.struct_types import _subclasses, build_struct_types
def decoders():
    built = set()
    for each in set(_subclasses(msgspec.Struct)):
        try:
            msgspec.json.Decoder(each)
            built.add(each)
        except (NameError, TypeError):
            pass
    return built
"""


def executed(*parts: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own, because it may end with a segmentation fault."""
    return subprocess.run(
        [sys.executable, "-c", "\n".join(parts)], capture_output=True, text=True, timeout=120, check=False
    )


def test_engine_builds_no_description_for_a_job() -> None:
    """The engine's threads decode jobs by a decoder that exists since the import."""
    ran = executed(ENGINE, "data = encode(job)", NO_MORE, "assert decode(data) == job")

    assert ran.returncode == 0, ran.stderr


def test_imported_structs_are_built_by_one_call() -> None:
    """Afterwards no decoder of a struct that the server has imported builds a description. Structs with names that only
    type checkers import cannot be decoded at any time.
    """
    decodable = executed(IMPORTED, "print(len(decoders()))")
    built = executed(IMPORTED, "build_struct_types()", NO_MORE, "print(len(decoders()))")
    late = executed(IMPORTED, NO_MORE, "print(len(decoders()))")

    assert int(built.stdout) == int(decodable.stdout) > int(late.stdout) + 300, late.stderr


def test_decoder_is_built_by_one_thread_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that decode answers of one type at once wait for the first, which builds the decoder."""
    inside, most = [], []

    class Decoder:
        def __init__(self, shape: object) -> None:
            inside.append(shape)
            most.append(len(inside))
            time.sleep(0.01)
            inside.pop()

    monkeypatch.setattr(struct_types, "_DECODERS", {})
    monkeypatch.setattr("limnos.model.struct_types.msgspec.json.Decoder", Decoder)
    with ThreadPoolExecutor(8) as pool:
        decoders = list(pool.map(struct_types.json_decoder, [list[int], list[str]] * 8))

    assert max(most) == 1
    assert len(set(map(id, decoders))) == 2
