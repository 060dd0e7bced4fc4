# SPDX-License-Identifier: Apache-2.0
"""The places where two neighbouring arguments of a call have one declared type: mypy infers which function is called.

A place is a call in the product of a function or class of the product. Its two arguments are both positional or both
given by keyword. Their parameters have the same declared type, so neither mypy nor ruff can notice an exchange.
"""

from __future__ import annotations

import ast
import io
import os
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from mypy import build
from mypy.config_parser import parse_config_file
from mypy.find_sources import create_source_list
from mypy.nodes import ARG_NAMED, ARG_POS, ARG_STAR, ARG_STAR2, CallExpr
from mypy.options import Options
from mypy.types import AnyType, CallableType, TypeVarType, get_proper_type

from conformance.swaps import call_plugin
from conformance.swaps.call_plugin import SignedCall

MARKER: Final = "limnos_swap_marker"
"""The module that notes that a place was reached."""


class Place(NamedTuple):
    """A call, and the first of two neighbouring arguments of one declared type."""

    path: str
    line: int
    column: int
    end: tuple[int, int]
    """The line and column behind the call: `a(…).b(…)` are two calls at one line and column."""
    argument: int
    """The index of the first of both, in the order of the call."""
    is_keyword: bool
    type: str
    callee: str
    ordinal: int = 0
    """Which of the equal calls of the file it is."""

    @property
    def address(self) -> str:
        """Where the place is: file, line, and the index of the first argument."""
        return f"{self.path}:{self.line}:{self.argument}"

    @property
    def key(self) -> str:
        """What identifies the place as long as the file has no other call of the function above it."""
        return f"{self.path} {self.callee} {self.ordinal} {self.argument}"


class Swap(NamedTuple):
    """The text of a file with two arguments exchanged."""

    before: str
    after: str
    text: bytes


def find_places(root: Path, package: str) -> list[Place]:
    """Return the places below a folder of sources, in the order of paths and lines.

    Raises RuntimeError if mypy has complaints: an inferred type would then be a guess.
    """
    options = Options()
    parse_config_file(options, lambda: None, str(root / "pyproject.toml"), io.StringIO(), io.StringIO())
    options.incremental, options.cache_dir = False, os.devnull
    options.mypy_path, options.plugins = [str(root / "src")], [call_plugin.__name__]
    call_plugin.COLLECTED.clear()
    call_plugin.CHOSEN.clear()
    call_plugin.CHOSEN.add(package)
    result = build.build(create_source_list([str(root / "src" / package)], options), options)
    if result.errors:
        raise RuntimeError(f"mypy: {result.errors[0]}")
    places = {place for each in call_plugin.COLLECTED for place in _places_of(each, root.resolve())}
    ordinals = Counter[tuple[str, str, int]]()
    numbered = []
    for each in sorted(places):
        numbered.append(each._replace(ordinal=ordinals[each.path, each.callee, each.argument]))
        ordinals[each.path, each.callee, each.argument] += 1
    return numbered


def _places_of(signed: SignedCall, root: Path) -> Iterator[Place]:
    call = signed.call
    types = [_type_of(call, signed.signature, index) for index in range(len(call.args))]
    for index, (one, other) in enumerate(pairwise(types)):
        kinds = call.arg_kinds[index : index + 2]
        if one and one == other and kinds[0] == kinds[1]:
            yield Place(
                path=Path(signed.file).resolve().relative_to(root).as_posix(),
                line=call.line,
                column=call.column,
                end=(call.end_line or 0, call.end_column or 0),
                argument=index,
                is_keyword=kinds[0] == ARG_NAMED,
                type=one,
                callee=signed.name,
            )


def _type_of(call: CallExpr, callee: CallableType, index: int) -> str:
    """Return the declared type of the parameter that an argument is for; empty where that says nothing."""
    kind = call.arg_kinds[index]
    if kind == ARG_POS and not {ARG_STAR, ARG_STAR2} & {*call.arg_kinds[:index]}:
        position = index
        if position >= len(callee.arg_types) or not callee.arg_kinds[position].is_positional():
            return ""  # for `*args`, whose values are alike
    elif kind == ARG_NAMED and call.arg_names[index] in callee.arg_names:
        position = callee.arg_names.index(call.arg_names[index])
    else:
        return ""
    declared = get_proper_type(callee.arg_types[position])
    return "" if isinstance(declared, AnyType | TypeVarType) else str(declared)


def exchange(text: bytes, place: Place) -> Swap | None:
    """Exchange the two arguments of a place, and let the call note that it was reached.

    None where an exchange changes nothing (equal arguments), or where positions are not exact: Python's in f-strings,
    mypy's in lines with characters beyond ASCII.
    """
    lines = text.splitlines(keepends=True)
    if not all(line.isascii() for line in lines[place.line - 1 : place.end[0]]):
        return None
    tree = ast.parse(text)
    inside_texts = {id(call) for each in ast.walk(tree) if isinstance(each, ast.JoinedStr) for call in ast.walk(each)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or _position(node) != (place.line, place.column, place.end):
            continue
        arguments = [*node.args, *(each.value for each in node.keywords)]
        one, other = arguments[place.argument : place.argument + 2]
        if id(node) in inside_texts or ast.dump(one) == ast.dump(other):
            return None
        first, second, head = (_span(each, lines) for each in (one, other, node.func))
        pieces = (
            text[: head[0]],
            b"(__import__(" + repr(MARKER).encode() + b").note() or " + text[slice(*head)] + b")",
            text[head[1] : first[0]],
            text[slice(*second)],
            text[first[1] : second[0]],
            text[slice(*first)],
            text[second[1] :],
        )
        return Swap(text[slice(*first)].decode(), text[slice(*second)].decode(), b"".join(pieces))
    return None


def _position(node: ast.expr) -> tuple[int, int, tuple[int, int]]:
    return node.lineno, node.col_offset, (node.end_lineno or 0, node.end_col_offset or 0)


def _span(node: ast.expr, lines: list[bytes]) -> tuple[int, int]:
    """Return the offsets of the first byte of an expression, and of the byte behind it."""
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
