"""Plans as bytes and back, for an engine in another process.

May import plans, `values.tagged` and the table of functions. Must not know who reads them. Functions travel by name, so both sides need the
same release. Reading makes nodes of plans and nothing else, whatever the bytes say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import msgspec

from limnos.sqlpp.errors import Place, too_deep
from limnos.sqlpp.functions import FUNCTIONS, Function
from limnos.sqlpp.plan import expressions, queries
from limnos.sqlpp.plan.expressions import Bound, Constant, EncodedPlan
from limnos.sqlpp.values.tagged import Json, tagged, untagged

if TYPE_CHECKING:
    from collections.abc import Mapping


class BadPlan(ValueError):
    """Bytes that are no plan."""


_NODES: Final[Mapping[str, type[Bound]]] = {
    name: found
    for room in (expressions, queries)
    for name, found in vars(room).items()
    if isinstance(found, type) and issubclass(found, Bound) and found is not EncodedPlan
}
_NODE, _FUNCTION = "n", "f"


def encode(node: Bound) -> bytes:
    """The bytes of a plan. Raises SqlppError for one that is nested too deep."""
    if isinstance(node, EncodedPlan):
        return node.data
    try:
        return msgspec.json.encode(_told(node))
    except RecursionError:
        raise too_deep() from None


def decode(data: bytes) -> Bound:
    """The plan of bytes. Raises BadPlan."""
    try:
        found = _made(msgspec.json.decode(data))
    except (msgspec.DecodeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise BadPlan(f"These bytes are no plan: {error}") from None
    if not isinstance(found, Bound):
        raise BadPlan("These bytes are no plan: no node is at their head")
    return found


def _told(part: object) -> Json:
    if isinstance(part, Constant):
        return {_NODE: "Constant", "at": list(part.at), "value": tagged(part.value)}
    if isinstance(part, Bound):
        fields = {name: _told(getattr(part, name)) for name in part.__struct_fields__}
        return {_NODE: type(part).__name__, **fields}
    if isinstance(part, Function):
        return {_FUNCTION: part.name}
    if isinstance(part, tuple):
        return [_told(item) for item in part]
    return cast("Json", part)


def _made(part: Json) -> object:
    if isinstance(part, list):
        return tuple(_made(item) for item in part)
    if not isinstance(part, dict):
        return part
    if _FUNCTION in part:
        return FUNCTIONS[cast("str", part[_FUNCTION])]
    kind, at = _NODES[cast("str", part[_NODE])], Place(*cast("list[int]", part["at"]))
    if kind is Constant:
        return Constant(at, untagged(part["value"]))
    rest = {name: _made(held) for name, held in part.items() if name not in (_NODE, "at")}
    return kind(at=at, **rest)
