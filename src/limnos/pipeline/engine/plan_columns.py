# SPDX-License-Identifier: Apache-2.0
"""Column lineage of an analyzed plan, from the plan's JSON.

Traces each output column to columns of the sources, and finds the columns that filter, join or group the rows. Must not
know Spark's session or sources: the caller names the leaves.

Spark writes a plan as a list of nodes in pre-order, each with the count of its children; expressions have the same
form. Columns are identified by expression ids, which stay the same from their definition to their uses.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

Json = dict[str, Any]
"""A node in Spark's JSON. Its fields depend on its class."""

IDENTITY, TRANSFORMATION, AGGREGATION = "IDENTITY", "TRANSFORMATION", "AGGREGATION"
_STRENGTH = {IDENTITY: 0, TRANSFORMATION: 1, AGGREGATION: 2}
_CASTS = frozenset({"Cast", "UpCast", "AnsiCast"})
_DIRECTLY = frozenset({"Alias", "PromotePrecision", "KnownNotNull", "TempResolvedColumn"})
_CONDITIONS = {"condition": "FILTER", "groupingExpressions": "GROUP_BY", "order": "SORT", "keys": "GROUP_BY"}
"""The fields of plans whose columns filter, join or group rows, with the kind of influence."""


class ColumnOrigin(NamedTuple):
    """A column of a source from which a value comes. `subtype` and `direct` have OpenLineage's meaning."""

    source: Hashable
    column: str
    subtype: str
    direct: bool


Origins = frozenset[ColumnOrigin]
ColumnEnvironment = dict[int, Origins]
"""Origins of columns by expression id."""
NOWHERE: Origins = frozenset()


class PlanTree(NamedTuple):
    """A node of a plan or an expression, with its children."""

    node: Json
    children: tuple[PlanTree, ...]

    @property
    def kind(self) -> str:
        """Return the simple name of the node's Scala class, such as `Project`."""
        return str(self.node.get("class", "")).rpartition(".")[2]


class PlanTrace(NamedTuple):
    """The lineage of a plan: its sources, the origins of its columns, and the columns that filter, join or group its
    rows.
    """

    inputs: tuple[Hashable, ...]
    columns: tuple[Origins, ...]
    rows: Origins


def trace(plan: Sequence[Json], leaves: Mapping[int, Hashable]) -> PlanTrace:
    """Trace a plan. `leaves` maps the expression id of a leaf's first column to the leaf's source."""
    tracer = _Tracer(leaves)
    env, output = tracer.plan(tree_of(plan), {})
    columns = tuple([env.get(one, NOWHERE) for one in output])
    return PlanTrace(tuple(tracer.inputs), columns, frozenset(tracer.rows))


def tree_of(nodes: Sequence[Json]) -> PlanTree:
    """Build the tree of a list in pre-order."""
    iterator = iter(nodes)

    def build() -> PlanTree:
        node = next(iterator)
        return PlanTree(node, tuple([build() for _ in range(int(node.get("num-children", 0)))]))

    return build()


def _is_tree(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict) and "num-children" in value[0]


def _trees(value: object) -> Iterator[PlanTree]:
    """Yield the expression trees in a node's field, including expressions in nested lists."""
    if _is_tree(value):
        yield tree_of(value)  # type: ignore[arg-type]
    elif isinstance(value, list):
        for each in value:
            yield from _trees(each)


def _id(node: Json) -> int | None:
    result = node.get("exprId")
    return int(result["id"]) if isinstance(result, dict) else None


def _ids(value: object) -> list[int]:
    """Return the ids of named expressions, in order."""
    return [one for tree in _trees(value) if (one := _id(tree.node)) is not None]


def _transformed_origins(origins: Iterable[ColumnOrigin], subtype: str) -> Origins:
    """Mark direct origins as transformed. A stronger subtype is not replaced: aggregated columns stay aggregated."""
    return frozenset(
        [
            each._replace(subtype=subtype)
            if each.direct and _STRENGTH.get(each.subtype, 2) < _STRENGTH[subtype]
            else each
            for each in origins
        ]
    )


def _indirect(origins: Iterable[ColumnOrigin], subtype: str) -> Origins:
    return frozenset([each._replace(subtype=subtype, direct=False) for each in origins])


class _Tracer:
    """A traversal of a plan. `rows` collects the columns that filter, join or group rows in the whole plan."""

    def __init__(self, leaves: Mapping[int, Hashable]) -> None:
        self.leaves = leaves
        self.inputs: dict[Hashable, None] = {}
        self.rows: set[ColumnOrigin] = set()
        self.shared: dict[int, list[Origins]] = {}
        """Columns of common table expressions, by their id."""

    def plan(self, tree: PlanTree, outer: ColumnEnvironment) -> tuple[ColumnEnvironment, list[int]]:
        """Trace a plan. Returns the origins of all columns in it, and the ids of its output columns."""
        if not tree.children:
            return self._leaf(tree, outer)
        if tree.kind == "WithCTE":
            return self._with(tree, outer)
        if tree.kind == "UnionLoop":
            return self._recursive_cte(tree, outer)
        if tree.kind == "SerializeFromObject":
            return self._mapped_rows(tree, outer)
        parts = [self.plan(child, outer) for child in tree.children]
        env: ColumnEnvironment = {key: origins for part, _ in parts for key, origins in part.items()}
        output = self._combine_children(tree, env, outputs=[ids for _, ids in parts])
        return env, self._expressions(tree, env, outer=outer, output=output)

    def _recursive_cte(self, tree: PlanTree, outer: ColumnEnvironment) -> tuple[ColumnEnvironment, list[int]]:
        """Trace a recursive CTE: repeat until no origins are added."""
        anchor, recursion = tree.children
        env, output = self.plan(anchor, outer)
        origins = [env.get(one, NOWHERE) for one in output]
        while True:
            self.shared[int(tree.node["id"])] = origins
            again, output = self.plan(recursion, outer)
            more = [known | again.get(one, NOWHERE) for known, one in zip(origins, output, strict=False)]
            if more == origins:
                break
            origins = more
        arguments = [int(each["id"]) for each in tree.node["outputAttrIds"]]
        return env | again | dict(zip(arguments, origins, strict=False)), arguments

    def _mapped_rows(self, tree: PlanTree, outer: ColumnEnvironment) -> tuple[ColumnEnvironment, list[int]]:
        """Trace rows that a function of the JVM maps, such as Iceberg's changelog: columns keep their names.

        A column with a new name may come from all columns below. Columns that only sort the function's input are not
        origins.
        """
        rows = set(self.rows)
        env, output = self.plan(tree.children[0], outer)
        self.rows = rows
        below = _all([env.get(one, NOWHERE) for one in output])
        columns = [each.node for each in _trees(tree.node.get("serializer"))]
        for node in columns:
            same = frozenset([each for each in below if each.direct and each.column == node.get("name")])
            env[_id(node) or 0] = same or _transformed_origins(below, TRANSFORMATION)
        return env, [_id(node) or 0 for node in columns]

    def _leaf(self, tree: PlanTree, outer: ColumnEnvironment) -> tuple[ColumnEnvironment, list[int]]:
        attributes = [each.node for each in _trees(tree.node.get("output"))]
        ids = [_id(node) or 0 for node in attributes]
        shared = tree.node.get("cteId", tree.node.get("loopId"))
        if shared is not None:
            known = self.shared.get(int(shared), [])
            return dict(zip(ids, known, strict=False)), ids
        source = self.leaves.get(ids[0]) if ids else None
        env: ColumnEnvironment = {}
        if source is not None:
            self.inputs[source] = None
            env = {
                one: frozenset([ColumnOrigin(source, str(node["name"]), IDENTITY, True)])
                for one, node in zip(ids, attributes, strict=True)
            }
        else:
            ids = self._expressions(tree, env, outer=outer, output=ids)
        return env, ids

    def _with(self, tree: PlanTree, outer: ColumnEnvironment) -> tuple[ColumnEnvironment, list[int]]:
        for index in tree.node.get("cteDefs") or ():
            definition = tree.children[int(index)]
            env, output = self.plan(definition, outer)
            self.shared[int(definition.node["id"])] = [env.get(one, NOWHERE) for one in output]
        return self.plan(tree.children[int(tree.node["plan"])], outer)

    def _combine_children(self, tree: PlanTree, env: ColumnEnvironment, *, outputs: list[list[int]]) -> list[int]:
        """Return the output columns of the children.

        For a union, also merge the origins of columns at the same position.
        """
        kind = tree.kind
        if kind == "Union":
            for position, one in enumerate(outputs[0]):
                env[one] = frozenset().union(
                    *(env.get(other[position], NOWHERE) for other in outputs if position < len(other))
                )
            return outputs[0]
        if kind in {"Except", "Intersect"}:
            self.rows |= _indirect([each for one in outputs[1] for each in env.get(one, NOWHERE)], "FILTER")
            return outputs[0]
        if kind == "Distinct":
            self.rows |= _indirect([each for one in outputs[0] for each in env.get(one, NOWHERE)], "GROUP_BY")
        if kind == "Join" and any(word in str(tree.node.get("joinType")) for word in ("LeftSemi", "LeftAnti")):
            return outputs[0]
        return [one for ids in outputs for one in ids]

    def _expressions(
        self, tree: PlanTree, env: ColumnEnvironment, *, outer: ColumnEnvironment, output: list[int]
    ) -> list[int]:
        """Trace a node's expressions into `env`. Returns the ids of its output columns."""
        node, kind = tree.node, tree.kind
        column_origin: dict[str, list[Origins]] = {}
        for name, value in node.items():
            if name == "output":
                continue
            for each in _trees(value):
                origins = self.origins(each, env, outer=outer)
                one = _id(each.node)
                if one is not None and each.kind == "Alias":
                    env[one] = origins
                column_origin.setdefault(name, []).append(origins)
        for name, subtype in _CONDITIONS.items():
            word = "JOIN" if kind in {"Join", "LateralJoin"} else subtype
            self.rows |= _indirect([one for origins in column_origin.get(name, ()) for one in origins], word)
        return self._generated_columns(tree, env, origins=column_origin, output=output)

    def _generated_columns(
        self, tree: PlanTree, env: ColumnEnvironment, *, origins: Mapping[str, list[Origins]], output: list[int]
    ) -> list[int]:
        """Return the node's output columns, and trace the columns that the node's class adds (Generate, Expand,
        LateralJoin) without a named expression.
        """
        node, kind = tree.node, tree.kind
        if kind == "Project":
            return _ids(node.get("projectList"))
        if kind == "Aggregate":
            return _ids(node.get("aggregateExpressions"))
        if kind == "Window":
            return [*output, *_ids(node.get("windowExpressions"))]
        if kind == "Generate":
            fresh = _ids(node.get("generatorOutput"))
            env |= dict.fromkeys(fresh, _transformed_origins(_all(origins.get("generator", ())), TRANSFORMATION))
            dropped = {int(each) for each in node.get("unrequiredChildIndex") or ()}
            return [*(one for at, one in enumerate(output) if at not in dropped), *fresh]
        if kind == "LateralJoin":
            return output + self._lateral(tree, env)
        ids = _ids(node.get("output"))
        if kind == "Expand":
            flat, width = origins.get("projections", []), max(1, len(ids))
            for position, one in enumerate(ids):
                env[one] = frozenset().union(*flat[position::width])
        elif ids:
            below = _transformed_origins(_all([env.get(one, NOWHERE) for one in output]), TRANSFORMATION)
            env |= {one: below for one in ids if one not in env}
        return ids or output

    def _lateral(self, tree: PlanTree, env: ColumnEnvironment) -> list[int]:
        """Trace the right side of a lateral join, which may refer to the columns of the left side."""
        for each in _trees(tree.node.get("right")):
            right, output = self.plan(tree_of(each.node["plan"]), env)
            env |= right
            return output
        return []

    def origins(self, tree: PlanTree, env: ColumnEnvironment, *, outer: ColumnEnvironment) -> Origins:
        """Return the columns from which an expression's value derives, with their OpenLineage subtypes."""
        node, kind = tree.node, tree.kind
        if kind == "AttributeReference":
            one = _id(node)
            return NOWHERE if one is None else env.get(one, outer.get(one, NOWHERE))
        if kind == "OuterReference":
            return _all([self.origins(each, outer, outer=outer) for each in _trees(node.get("e"))])
        if _is_tree(node.get("plan")):
            return self._subquery(tree, env, outer=outer)
        if kind == "WindowExpression":
            function, spec = [self.origins(each, env, outer=outer) for each in tree.children]
            subtype = AGGREGATION if tree.children[0].kind == "AggregateExpression" else TRANSFORMATION
            return _transformed_origins(function, subtype) | _indirect(spec, "WINDOW")
        origins = [self.origins(each, env, outer=outer) for each in tree.children]
        if kind in {"CaseWhen", "If"}:
            return _split_conditions(kind, origins)
        if kind in _DIRECTLY or (kind in _CASTS and _keeps_type(tree)):
            return _all(origins)
        return _transformed_origins(_all(origins), AGGREGATION if kind == "AggregateExpression" else TRANSFORMATION)

    def _subquery(self, tree: PlanTree, env: ColumnEnvironment, *, outer: ColumnEnvironment) -> Origins:
        """Trace a subquery in an expression, including the values that its result is compared with."""
        inner, output = self.plan(tree_of(tree.node["plan"]), {**outer, **env})
        if tree.kind == "LateralSubquery":
            return NOWHERE
        return _all([inner.get(one, NOWHERE) for one in output])


def _all(origins: Iterable[Origins]) -> Origins:
    return frozenset().union(*origins)


def _split_conditions(kind: str, origins: Sequence[Origins]) -> Origins:
    """Separate values from the conditions of CASE or IF: condition, value, condition, value, …, else."""
    last = len(origins) - 1
    is_condition = [at == 0 if kind == "If" else at % 2 == 0 and at != last for at in range(len(origins))]
    if kind == "CaseWhen" and len(origins) % 2 == 0:
        is_condition = [at % 2 == 0 for at in range(len(origins))]
    pairs = list(zip(origins, is_condition, strict=True))
    values = _transformed_origins(_all([one for one, decides in pairs if not decides]), TRANSFORMATION)
    return values | _indirect(_all([one for one, decides in pairs if decides]), "CONDITIONAL")


def _keeps_type(tree: PlanTree) -> bool:
    """Return whether a cast node converts a value to its own type, which is not a transformation."""
    return tree.children[0].node.get("dataType") == tree.node.get("dataType")
