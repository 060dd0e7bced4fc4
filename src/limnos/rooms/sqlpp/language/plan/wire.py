# SPDX-License-Identifier: Apache-2.0
"""Encoding of plans as bytes, for an engine in another process.

Functions are encoded by name, so both processes must run the same release. Decoding creates only plan nodes, regardless
of the content of the bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

import msgspec

from limnos.rooms.sqlpp.language.errors import TextPosition, too_deep
from limnos.rooms.sqlpp.language.functions import FUNCTIONS, Function
from limnos.rooms.sqlpp.language.plan import expressions, queries
from limnos.rooms.sqlpp.language.plan.expressions import Constant, EncodedPlan, PlanNode
from limnos.rooms.sqlpp.language.values.tagged import Json, from_tagged_json, to_tagged_json


class BadPlan(ValueError):
    """Raised if bytes are not a valid plan."""


_NODES: Final[Mapping[str, type[PlanNode]]] = {
    name: result
    for room in (expressions, queries)
    for name, result in vars(room).items()
    if isinstance(result, type) and issubclass(result, PlanNode) and result is not EncodedPlan
}
_NODE, _FUNCTION = "n", "f"


def encode(node: PlanNode) -> bytes:
    """Encode a plan as bytes. Raises SqlppError if it is nested too deeply."""
    if isinstance(node, EncodedPlan):
        return node.data
    try:
        return msgspec.json.encode(_encode_part(node))
    except RecursionError:
        raise too_deep() from None


def decode(data: bytes) -> PlanNode:
    """Decode a plan from bytes. Raises BadPlan for bytes that are not a plan, or that another release encoded."""
    try:
        part = _decode_part(msgspec.json.decode(data))
    except (msgspec.DecodeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise BadPlan(f"These bytes are not a plan: {error}") from None
    if not isinstance(part, PlanNode):
        raise BadPlan("These bytes are not a plan: they do not begin with a node")
    return part


def _encode_part(part: object) -> Json:
    if isinstance(part, Constant):
        return {_NODE: "Constant", "at": list(part.at), "value": to_tagged_json(part.value)}
    if isinstance(part, PlanNode):
        fields = {name: _encode_part(getattr(part, name)) for name in part.__struct_fields__}
        return {_NODE: type(part).__name__, **fields}
    if isinstance(part, Function):
        return {_FUNCTION: part.name}
    if isinstance(part, tuple):
        return [_encode_part(item) for item in part]
    return cast("Json", part)


def _decode_part(part: Json) -> object:
    if isinstance(part, list):
        return tuple(_decode_part(item) for item in part)
    if not isinstance(part, dict):
        return part
    if _FUNCTION in part:
        return FUNCTIONS[cast("str", part[_FUNCTION])]
    kind, at = _NODES[cast("str", part[_NODE])], TextPosition(*cast("list[int]", part["at"]))
    if kind is Constant:
        return Constant(at, from_tagged_json(part["value"]))
    rest = {name: _decode_part(current) for name, current in part.items() if name not in (_NODE, "at")}
    return kind(at=at, **rest)
