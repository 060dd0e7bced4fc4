# SPDX-License-Identifier: Apache-2.0
"""Projection and predicate pushdown: determines the fields, conditions and limit that each scan of a statement needs.

Must not know an engine. Requirements are necessary conditions only: an engine that returns more gives the same results,
because the whole statement is evaluated afterwards. Only the conditions of groups are exact. Each scan gets its own
number, so that the requirements of one scan do not restrict another scan of the same dataset.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct, structs

from limnos.rooms.sqlpp.language import plan
from limnos.rooms.sqlpp.language.conditions import Condition, constant_value, necessary_conditions
from limnos.rooms.sqlpp.language.groups import EngineGrouping, delegate_groups
from limnos.rooms.sqlpp.language.plan.traversal import replace_children, walk
from limnos.rooms.sqlpp.language.relations import RelationalQuery, UntranslatableExpression, translate_query
from limnos.rooms.sqlpp.language.stored import RecordType
from limnos.rooms.sqlpp.language.values.model import Value

NUMBERED = ("",)
"""The dataverse of numbered scans, a name that no real dataverse has."""


class ScanRequirement(Struct, frozen=True, kw_only=True):
    """The objects that a scan must return: complete ones if `fields` is None, all of them if `limit` is None."""

    dataverse: tuple[str, ...]
    name: str
    fields: frozenset[str] | None = None
    conditions: tuple[Condition, ...] = ()
    limit: int | None = None
    grouped: EngineGrouping | None = None
    """Return these groups instead of objects. The conditions then select exactly the objects to group."""
    carried: RelationalQuery | None = None
    """Return the results of this translated query instead of a dataset's objects."""
    query: plan.Subquery | None = None
    """The plan of `carried`, for the evaluator if the engine fails."""


def prepare_scans(
    expression: plan.Expression,
    *,
    result_fields: frozenset[str] | None = None,
    types: Callable[[tuple[str, ...], str], RecordType | None] = lambda *_: None,
    carries: bool = True,
) -> tuple[plan.Expression, tuple[ScanRequirement, ...]]:
    """Number the scans of a statement and determine the requirements of each scan.

    Args:
        expression: The bound statement.
        result_fields: The fields that the caller uses of results that are unchanged objects of a dataset; None for all.
        types: Returns a dataset's type if an engine has typed columns for it; groups are then pushed down.
        carries: Whether translatable subqueries become scans.

    Returns:
        The changed plan, and the requirements in the order of the scan numbers.

    Raises:
        RecursionError: The statement is nested too deeply.
    """
    numbering = _ScanNumbering(expression, result_fields=result_fields, types=types, carries=carries)
    return numbering.number_scans(expression), tuple(numbering.requirements)


class _ScanNumbering:
    """Numbers the scans of one statement."""

    def __init__(
        self,
        expression: plan.Expression,
        *,
        result_fields: frozenset[str] | None,
        types: Callable[[tuple[str, ...], str], RecordType | None],
        carries: bool,
    ) -> None:
        self.requirements: list[ScanRequirement] = []
        self._carries = carries
        self._outermost = expression
        self._types = types
        self._result_fields = result_fields or frozenset()
        self._whole = _whole_uses(expression, result_fields=result_fields)
        self._limits = _limits(expression)
        self._fields: dict[int, set[str]] = {}
        for node in walk(expression):
            if isinstance(node, plan.FieldOf) and isinstance(node.base, plan.Local):
                self._fields.setdefault(node.base.slot, set()).add(node.name)

    def number_scans(self, node: plan.Expression) -> plan.Expression:
        """Return a copy of an expression in which each dataset scan has a number."""
        new_node = self._number_node(node)
        if not isinstance(new_node, plan.Expression):
            raise TypeError("the rewrite of an expression must be an expression")
        return new_node

    def _number_node(self, node: plan.PlanNode) -> plan.PlanNode:
        if isinstance(node, plan.Scan):
            return self._scan(node, ScanRequirement(dataverse=node.dataverse, name=node.name))
        if isinstance(node, plan.Subquery):
            scan = self._subquery_scan(node)
            if scan is not None:
                return scan
        if isinstance(node, plan.Query):
            node = self._groups(node) or node
        sources: dict[str, object] = {}
        if isinstance(node, plan.Block):
            sources["sources"] = tuple(self._source(source, node) for source in node.sources)
        return replace_children(node, self._number_node, finished=sources)

    def _scan(self, at: plan.Expression, requirement: ScanRequirement) -> plan.Scan:
        """Return a scan with the next number, and record its requirement."""
        self.requirements.append(requirement)
        return plan.Scan(at.at, NUMBERED, str(len(self.requirements) - 1))

    def _subquery_scan(self, node: plan.Subquery) -> plan.Scan | None:
        """Return a scan for a subquery that an engine can execute; None for other subqueries."""
        if node is self._outermost or not self._carries:
            return None
        try:
            query = translate_query(node.query, self._types)
        except UntranslatableExpression:
            return None
        return self._scan(node, ScanRequirement(dataverse=NUMBERED, name="", carried=query, query=node))

    def _source(self, source: plan.ForEach, block: plan.Block) -> plan.ForEach:
        scan, slot = source.source, source.slot
        if isinstance(scan, plan.Scan) and scan.dataverse == NUMBERED:
            return source
        if isinstance(scan, plan.Scan):
            needed_fields = None if slot in self._whole else frozenset(self._fields.get(slot, ())) | self._result_fields
            conditions = tuple(_conditions(source, block))
            requirement = ScanRequirement(
                dataverse=scan.dataverse,
                name=scan.name,
                fields=needed_fields,
                conditions=conditions,
                limit=self._limits.get(slot),
            )
            new_source: plan.Expression = self._scan(scan, requirement)
        else:
            new_source = self.number_scans(scan)
        condition = None if source.condition is None else self.number_scans(source.condition)
        return structs.replace(source, source=new_source, condition=condition)

    def _groups(self, query: plan.Query) -> plan.Query | None:
        """Rewrite a query to read groups that an engine computes; None for other queries."""
        block = query.arms[0]
        if len(query.arms) > 1 or not isinstance(block, plan.Block) or len(block.sources) != 1:
            return None
        source = block.sources[0]
        scan = source.source
        record = self._types(scan.dataverse, scan.name) if isinstance(scan, plan.Scan) else None
        order = query.order if query.output is None else ()
        engine_group_block = None if record is None else delegate_groups(block, order, record=record)
        if engine_group_block is None or not isinstance(scan, plan.Scan):
            return None
        groups = self._scan(
            scan,
            ScanRequirement(
                dataverse=scan.dataverse,
                name=scan.name,
                fields=None,
                conditions=engine_group_block.conditions,
                grouped=engine_group_block.grouped,
            ),
        )
        changed_block = structs.replace(engine_group_block.block, sources=(structs.replace(source, source=groups),))
        return structs.replace(
            query, arms=(changed_block,), order=engine_group_block.order if query.output is None else query.order
        )


def runs_functions(expression: plan.Expression) -> bool:
    """Return whether `prepare_scans` may call functions, to evaluate constant arguments of conditions."""
    may_be_known = (plan.Constant, plan.ArrayOf, plan.SignOf, plan.FunctionCall)
    for node in walk(expression):
        arguments = node.arguments if isinstance(node, plan.FunctionCall) else ()
        if arguments and False not in [isinstance(each, may_be_known) for each in arguments]:
            return True
    return False


def _whole_uses(expression: plan.Expression, *, result_fields: frozenset[str] | None) -> set[int]:
    """Return the slots of variables of which an expression uses more than single fields."""
    results = _results(expression) if result_fields is not None else ()
    entries: set[int] = set()
    waiting: list[object] = [expression]
    while waiting:
        item = waiting.pop()
        if type(item) is tuple:
            waiting.extend(item)
        elif isinstance(item, plan.Local):
            entries.add(item.slot)
        elif isinstance(item, plan.Select) and any(item.value is result for result in results):
            waiting.append(item.projections)
        elif isinstance(item, plan.PlanNode) and not (
            isinstance(item, plan.FieldOf) and isinstance(item.base, plan.Local)
        ):
            waiting.extend([getattr(item, name) for name in item.__struct_fields__[1:]])
    return entries


def _results(expression: plan.Expression) -> tuple[plan.Local, ...]:
    """Return the variables that are the SELECT VALUE of the blocks of a query."""
    if not isinstance(expression, plan.Subquery):
        return ()
    blocks = [arm for arm in expression.query.arms if isinstance(arm, plan.Block)]
    return tuple(block.select.value for block in blocks if isinstance(block.select.value, plan.Local))


def _limits(expression: plan.Expression) -> dict[int, int]:
    """Return the count of objects that suffice, by slot, for a query with LIMIT over one dataset without filter or
    order.
    """
    if not isinstance(expression, plan.Subquery):
        return {}
    query = expression.query
    block = query.arms[0]
    is_plain = isinstance(block, plan.Block) and len(query.arms) == 1 and len(block.sources) == 1
    if not is_plain or not isinstance(block, plan.Block) or query.limit is None or query.order:
        return {}
    if block.where is not None or block.group is not None or block.having is not None:
        return {}
    if block.windows or _has_windows(block.lets) or block.select.distinct or block.sources[0].kind != "scan":
        return {}
    limit, offset = constant_value(query.limit), 0 if query.offset is None else constant_value(query.offset)
    if not _is_count(limit) or not _is_count(offset):
        return {}
    return {block.sources[0].slot: limit + offset}  # type: ignore[operator, dict-item]


def _has_windows(steps: tuple[plan.Let | plan.WindowCall, ...]) -> bool:
    return any(isinstance(step, plan.WindowCall) for step in steps)


def _is_count(value: Value) -> bool:
    return type(value) is int and 0 <= value < 1 << 31


def _conditions(source: plan.ForEach, block: plan.Block) -> Iterator[Condition]:
    """Return necessary conditions on a source's objects, from WHERE and the condition of an inner join.

    WHERE is not used if window functions precede it, because they need the rows that WHERE removes.
    """
    kinds = {other.kind for other in block.sources}
    if "right" in kinds or source.kind not in ("scan", "inner", "cross"):
        return
    where = None if _has_windows(block.lets) else block.where
    for condition in (where, source.condition if source.kind == "inner" else None):
        if condition is not None:
            yield from necessary_conditions(condition, source.slot)
