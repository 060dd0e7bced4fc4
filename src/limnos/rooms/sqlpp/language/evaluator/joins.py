# SPDX-License-Identifier: Apache-2.0
"""Hash joins: finds the items that may match a row by the keys of equality conditions, without testing each pair.

Must not know the steps of a block. The result contains all items that *may* match: the condition is still evaluated, so
NULL, MISSING and deep equality keep their meaning. The order is that of nested loops. An item or row whose key cannot
be computed may match every other: evaluating the condition then raises the error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from limnos.rooms.sqlpp.language import plan
from limnos.rooms.sqlpp.language.errors import SqlppError
from limnos.rooms.sqlpp.language.evaluator.context import EvaluationContext, Row
from limnos.rooms.sqlpp.language.evaluator.expressions import compile_expression
from limnos.rooms.sqlpp.language.evaluator.slots import slots_in
from limnos.rooms.sqlpp.language.values.model import Value, is_unknown


class SurroundingSlots(NamedTuple):
    """The slots of a block that are assigned before and after a source."""

    earlier: frozenset[int]
    later: frozenset[int]


class JoinKeys(NamedTuple):
    """The functions of a join's equalities: `left` for a row of earlier sources, `right` for a row with the source's
    item.
    """

    left: tuple[Callable[[Row], Value], ...]
    right: tuple[Callable[[Row], Value], ...]


def surrounding_slots_of(node: plan.Block) -> list[SurroundingSlots]:
    """Return, for each source of a block, the slots that are assigned before it and after it."""
    source_slots = [own_slots(source) for source in node.sources]
    last = frozenset(let.slot for let in node.lets)
    return [
        SurroundingSlots(frozenset().union(*source_slots[:at]), last.union(*source_slots[at + 1 :]))
        for at in range(len(source_slots))
    ]


def own_slots(node: plan.ForEach) -> frozenset[int]:
    """Return the slots of a source's own variables."""
    return frozenset({node.slot} if node.position is None else {node.slot, node.position})


def is_uncorrelated(node: plan.ForEach, around: SurroundingSlots) -> bool:
    """Return whether the items of a source do not depend on earlier sources, so that they are the same for all rows."""
    read = slots_in(node.source)
    return read is not None and not read & around.earlier


def keys_of(
    node: plan.ForEach, where: plan.Expression | None, *, around: SurroundingSlots, working: EvaluationContext
) -> JoinKeys | None:
    """Return the join keys of a source: equalities with earlier sources or outer variables, in its condition or in
    WHERE.

    None if there are no such equalities.
    """
    source_slots = own_slots(node)
    results = [
        sides for each in conjuncts(node.condition, where) if (sides := _sides(each, source_slots, around=around))
    ]
    if not results:
        return None
    lefts, rights = zip(*results, strict=True)
    return JoinKeys(
        tuple(compile_expression(each, working) for each in lefts),
        tuple(compile_expression(each, working) for each in rights),
    )


def conjuncts(*conditions: plan.Expression | None) -> Iterator[plan.Expression]:
    """Yield the operands of AND in conditions, recursively."""
    waiting = [each for each in reversed(conditions) if each is not None]
    while waiting:
        node = waiting.pop()
        if isinstance(node, plan.Operate) and node.operators[0] == "and":
            waiting.extend(reversed(node.operands))
        else:
            yield node


def _sides(
    node: plan.Expression, own: frozenset[int], *, around: SurroundingSlots
) -> tuple[plan.Expression, plan.Expression] | None:
    """Return the operands of an equality between earlier sources and this source, in this order; None for other
    expressions.

    The second operand uses this source's variables only, so that the index stays valid while outer variables change.
    """
    if not isinstance(node, plan.Operate) or node.operators != ("=",):
        return None
    one, other = node.operands
    for left, right in ((one, other), (other, one)):
        of_left, of_right = slots_in(left), slots_in(right)
        if of_left is None or of_right is None:
            return None
        if of_right and of_right <= own and not of_left & (own | around.later):
            return left, right
    return None


class JoinPartners:
    """The items of a source, with a hash index by their join keys that is built for the second row."""

    def __init__(
        self,
        elements: Sequence[Value],
        find_keys: Callable[[], JoinKeys | None],
        *,
        put: Callable[[Row, Value, int], Row],
        working: EvaluationContext,
    ) -> None:
        self.held = elements
        self._find_keys = find_keys
        self._keys: JoinKeys | None = None
        self._put = put
        self._working = working
        self._asked = False
        self._index: dict[bytes, list[tuple[int, Value]]] | None = None
        self._unsure: list[tuple[int, Value]] = []

    def of(self, row: Row) -> Iterable[tuple[int, Value]]:
        """Return the items that may match a row, in order; all items without join keys. The second call builds the
        index.
        """
        if not self._asked:
            self._asked = True
            return enumerate(self.held)
        if self._index is None:
            self._keys = self._find_keys()
            self._index = {} if self._keys is None else self._build_index(row, self._keys.right)
        keys = self._keys
        if keys is None:
            return enumerate(self.held)
        try:
            key = _key(keys.left, row, working=self._working)
        except SqlppError:
            return enumerate(self.held)
        bucket = self._index.get(key, []) if key is not None else []
        if not self._unsure:
            return bucket
        self._working.budget.keep(len(bucket) + len(self._unsure))
        return sorted(bucket + self._unsure, key=_place)

    def _build_index(self, row: Row, right: Sequence[Callable[[Row], Value]]) -> dict[bytes, list[tuple[int, Value]]]:
        self._working.budget.keep(len(self.held))
        index: dict[bytes, list[tuple[int, Value]]] = {}
        for at, item in enumerate(self.held):
            self._working.budget.step()
            try:
                key = _key(right, self._put(row, item, at), working=self._working)
            except SqlppError:
                self._unsure.append((at, item))
                continue
            if key is not None:
                index.setdefault(key, []).append((at, item))
        return index


def _key(works: Sequence[Callable[[Row], Value]], row: Row, *, working: EvaluationContext) -> bytes | None:
    """Return the combined key of several values; None if one is NULL or MISSING, which are equal to no value."""
    parts = []
    for work in works:
        value = work(row)
        if is_unknown(value):
            return None
        parts.append(working.key(value))
    return b"".join(parts)


def _place(item: tuple[int, Value]) -> int:
    return item[0]
