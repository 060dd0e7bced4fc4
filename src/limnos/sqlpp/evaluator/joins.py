"""Joins by equality: which items of a source can have a row as partner, found by keys and not by looking at each pair.

May import plans, `values` and the functions of expressions. Must not know how rows go through a block. What is found here is what *may* be a
partner: the condition is worked out all the same, so NULL, MISSING and deep equality mean what they mean, and the order is that of nested
loops. An item or a row whose key can't be worked out may be anybody's partner: the condition meets the error itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from limnos.sqlpp import plan
from limnos.sqlpp.errors import SqlppError
from limnos.sqlpp.evaluator.expressions import work_of
from limnos.sqlpp.values.model import is_unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from limnos.sqlpp.evaluator.context import EvaluationContext, Row
    from limnos.sqlpp.values.model import Value


class SurroundingSlots(NamedTuple):
    """The slots of a block as a source sees them: those filled before it, and those that are filled after it."""

    earlier: frozenset[int]
    later: frozenset[int]


class JoinKeys(NamedTuple):
    """What must be equal: worked out in a row of earlier sources, and in a row that has the item."""

    left: tuple[Callable[[Row], Value], ...]
    right: tuple[Callable[[Row], Value], ...]


def surrounding_slots_of(node: plan.Block) -> list[SurroundingSlots | None]:
    """For each source of a block what is before it and after it; None for the first, which meets a single row and needs no keys."""
    if len(node.sources) < 2:
        return [None] * len(node.sources)
    own = [own_slots(source) for source in node.sources]
    last = frozenset(let.slot for let in node.lets)
    others = [SurroundingSlots(frozenset().union(*own[:at]), last.union(*own[at + 1 :])) for at in range(1, len(own))]
    return [None, *others]


def own_slots(node: plan.ForEach) -> frozenset[int]:
    """The slots that a source fills."""
    return frozenset({node.slot} if node.position is None else {node.slot, node.position})


def is_uncorrelated(node: plan.ForEach, around: SurroundingSlots) -> bool:
    """Say whether a source is the same for all rows of earlier sources."""
    read = slots_in(node.source)
    return read is not None and not read & around.earlier


def keys_of(
    node: plan.ForEach, where: plan.Expression | None, *, around: SurroundingSlots, working: EvaluationContext
) -> JoinKeys | None:
    """The equalities between a source and what is before it, from its own condition or from WHERE; None where there are none."""
    own = own_slots(node)
    found = [sides for each in conjuncts(node.condition, where) if (sides := _sides(each, own, around=around))]
    if not found:
        return None
    lefts, rights = zip(*found, strict=True)
    return JoinKeys(tuple(work_of(each, working) for each in lefts), tuple(work_of(each, working) for each in rights))


def conjuncts(*conditions: plan.Expression | None) -> Iterator[plan.Expression]:
    """The conditions that must all be true."""
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
    """The operands of an equality of which one is about earlier sources and the other about this one; None for what is no such."""
    if not isinstance(node, plan.Operate) or node.operators != ("=",):
        return None
    one, other = node.operands
    for left, right in ((one, other), (other, one)):
        of_left, of_right = slots_in(left), slots_in(right)
        if of_left is None or of_right is None:
            return None
        if of_right & own and not of_right & (around.earlier | around.later) and not of_left & (own | around.later):
            return left, right
    return None


def slots_in(node: plan.PlanNode) -> frozenset[int] | None:
    """The variables that an expression reads, its own among them; None where it may have another value each time."""
    waiting: list[object] = [node]
    found = set()
    while waiting:
        item = waiting.pop()
        if isinstance(item, plan.Local):
            found.add(item.slot)
        elif isinstance(item, plan.FunctionCall) and not item.function.settled:
            return None
        elif isinstance(item, tuple):
            waiting.extend(item)
        if isinstance(item, plan.PlanNode) and not isinstance(item, plan.Constant):
            waiting.extend([getattr(item, name) for name in item.__struct_fields__])
    return frozenset(found)


class JoinPartners:
    """The items of a source, and by their keys once a second row asks."""

    def __init__(
        self,
        held: Sequence[Value],
        keys: JoinKeys | None,
        *,
        put: Callable[[Row, Value, int], Row],
        working: EvaluationContext,
    ) -> None:
        self.held = held
        self._keys = keys
        self._put = put
        self._working = working
        self._asked = False
        self._index: dict[bytes, list[tuple[int, Value]]] | None = None
        self._unsure: list[tuple[int, Value]] = []

    def of(self, row: Row) -> Iterable[tuple[int, Value]]:
        """What may be a row's partner, in order: without keys all. One row alone is not worth an index."""
        keys = self._keys
        if keys is None or not self._asked:
            self._asked = True
            return enumerate(self.held)
        if self._index is None:
            self._index = self._built(row, keys.right)
        try:
            found = _key(keys.left, row, working=self._working)
        except SqlppError:
            return enumerate(self.held)
        bucket = self._index.get(found, []) if found is not None else []
        if not self._unsure:
            return bucket
        self._working.budget.keep(len(bucket) + len(self._unsure))
        return sorted(bucket + self._unsure, key=_place)

    def _built(self, row: Row, right: Sequence[Callable[[Row], Value]]) -> dict[bytes, list[tuple[int, Value]]]:
        self._working.budget.keep(len(self.held))
        index: dict[bytes, list[tuple[int, Value]]] = {}
        for at, item in enumerate(self.held):
            self._working.budget.step()
            try:
                found = _key(right, self._put(row, item, at), working=self._working)
            except SqlppError:
                self._unsure.append((at, item))
                continue
            if found is not None:
                index.setdefault(found, []).append((at, item))
        return index


def _key(works: Sequence[Callable[[Row], Value]], row: Row, *, working: EvaluationContext) -> bytes | None:
    """The key of some values together; None where one is unknown, which is equal to nothing."""
    parts = []
    for work in works:
        value = work(row)
        if is_unknown(value):
            return None
        parts.append(working.key(value))
    return b"".join(parts)


def _place(item: tuple[int, Value]) -> int:
    return item[0]
