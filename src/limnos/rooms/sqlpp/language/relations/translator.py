# SPDX-License-Identifier: Apache-2.0
"""The state of a translation: the shapes of variables, unused column ids, and the rows translated so far.

Must not know clauses. A `BlockTranslator` translates one block; those of a statement share the variables. A condition
on rows of an outer block cannot filter the inner block: it is collected in `outer_conditions` as a condition of their
join.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

from limnos.rooms.sqlpp.language import plan
from limnos.rooms.sqlpp.language.relations.nodes import (
    Extension,
    Filter,
    Join,
    JoinKind,
    Relation,
    RowGrouping,
    outputs,
)
from limnos.rooms.sqlpp.language.relations.shapes import CellShape, Shape, UntranslatableExpression, map_terms, terms_in
from limnos.rooms.sqlpp.language.relations.terms import ColumnTerm, Term, TruthTerm, columns_in
from limnos.rooms.sqlpp.language.stored import RecordType

DatasetTypes = Callable[[tuple[str, ...], str], "RecordType | None"]
DEEPEST = 48
"""The maximum nesting depth of subqueries and relations of a block, so that engines' parsers can handle them."""


class TranslationState:
    """The translation state shared by all blocks of a statement."""

    def __init__(self, types: DatasetTypes) -> None:
        self.types = types
        self.ids: Iterator[int] = itertools.count(1)
        self.shapes: dict[int, Shape] = {}
        self.later: dict[int, plan.Expression] = {}
        """Variables bound to a query, which is inlined at each use."""


class BlockTranslator:
    """The translation state of one block: its rows so far, its aggregates, and its conditions on outer blocks."""

    def __init__(self, known: TranslationState, *, depth: int = 0) -> None:
        if depth > DEEPEST:
            raise UntranslatableExpression("subqueries nested too deep")
        self.known = known
        self.depth = depth
        self.rows: Relation | None = None
        self.outer_conditions: list[Term] = []
        self.aggregates: dict[int, Shape] = {}
        """The aggregates of a group, by the identity of their nodes."""
        self.evaluator_conditions: list[Shape] | None = None
        """Conditions left to the evaluator; None if later operations need filtered rows, so that none may be left."""

    def inner(self) -> BlockTranslator:
        """Return a translator for a nested block."""
        return BlockTranslator(self.known, depth=self.depth + 1)

    def new(self) -> int:
        """Return an unused column id."""
        return next(self.known.ids)

    @property
    def relation(self) -> Relation:
        """The relation translated so far. Raises UntranslatableExpression if the block has no rows yet."""
        if self.rows is None:
            raise UntranslatableExpression("a subquery before the first FROM term")
        return self.rows

    def filter(self, condition: Term) -> None:
        """Filter the rows by a condition. A condition on an outer block is collected in `outer_conditions`."""
        if columns_in(condition) <= outputs(self.relation):
            self.rows = Filter(self.relation, condition)
        else:
            self.outer_conditions.append(condition)

    def join(self, kind: JoinKind, right: Relation, *, on: Term | None) -> None:
        """Join the rows with a relation; the first relation becomes the rows."""
        self.rows = right if self.rows is None else Join(kind, self.rows, right, on)

    def extend(self, *columns: tuple[int, Term]) -> None:
        """Add computed columns to the rows."""
        if columns:
            self.rows = Extension(self.relation, columns)

    def materialize_shape(self, shape: Shape) -> Shape:
        """Materialize a shape: add its terms to the rows as columns, and return the shape over these columns."""
        entries: dict[Term, int] = {}
        for term in terms_in(shape):
            if not isinstance(term, ColumnTerm) or term.id not in outputs(self.relation):
                entries.setdefault(term, self.new())
        self.extend(*((number, term) for term, number in entries.items()))
        return map_terms(shape, lambda term: ColumnTerm(entries[term]) if term in entries else term)

    def distinct_shape(self, shape: Shape) -> tuple[Shape, dict[Term, int]]:
        """Apply DISTINCT to the rows by the values of a shape. Returns the new shape, and the column id of each term.

        Raises UntranslatableExpression.
        """
        entries: dict[Term, int] = {}
        for term in terms_in(shape):
            entries.setdefault(term, self.new())
        if not entries:
            raise UntranslatableExpression("DISTINCT of a constant")
        self.rows = RowGrouping(self.relation, tuple((number, term) for term, number in entries.items()), ())
        return map_terms(shape, lambda term: ColumnTerm(entries[term])), entries


def column(number: int, like: CellShape, *, known: bool | None = None, missing: TruthTerm = False) -> CellShape:
    """Return a cell for a new column of the type of `like`; a null column is NULL, or MISSING if `missing` is true."""
    return CellShape(ColumnTerm(number), like.type, missing, known=like.known if known is None else known)
