"""Which variables are in scope, and what an identifier that is none of them means.

May import `errors` and plans. Must not know the syntax tree. A scope is a link of a chain: what it adds, and what is outside. Slots are
numbered through the statement by `SlotCounter`.

The rule (asterixdb.md, 3.4): a variable wins everywhere. Else, where a source of rows may stand (`sources`), it begins a dataset's name.
Else it is a field of the only variable that this block's FROM has bound; with none or several it cannot be told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limnos.sqlpp.errors import SqlppError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limnos.sqlpp.errors import TextPosition

UNDEFINED = 1073
AMBIGUOUS = 1074


class SlotCounter:
    """Numbers of variables."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def new(self) -> int:
        """The next number."""
        self.count += 1
        return self.count - 1


class VariableScope:
    """Variables by name, with what is outside.

    `fields_of` are the slots of the variables that a bare identifier may be a field of; None: it is none of this block. `sources` says that
    an identifier that is no variable is a dataset.
    """

    __slots__ = ("fields_of", "outer", "sources", "variables")

    def __init__(
        self,
        outer: VariableScope | None,
        variables: Mapping[str, int] | None = None,
        *,
        fields_of: tuple[tuple[str, int], ...] | None = None,
        sources: bool = False,
    ) -> None:
        self.outer = outer
        self.variables = dict(variables or {})
        self.fields_of = fields_of
        self.sources = sources

    def find(self, name: str) -> int | None:
        """The slot of a variable, innermost first."""
        scope: VariableScope | None = self
        while scope is not None:
            if name in scope.variables:
                return scope.variables[name]
            scope = scope.outer
        return None

    def with_(self, variables: Mapping[str, int]) -> VariableScope:
        """A scope inside with more variables, that is like this one for everything else."""
        return VariableScope(self, variables, fields_of=self.fields_of, sources=self.sources)

    def as_source(self) -> VariableScope:
        """The same variables, in the position of a source of rows."""
        return VariableScope(self, fields_of=None, sources=True)

    def implied(self, name: str, place: TextPosition) -> tuple[str, int]:
        """The variable whose field a bare identifier is."""
        bound = self.fields_of or ()
        if len(bound) == 1:
            return bound[0]
        shown = name.replace("\n", " ")
        if not bound:
            raise SqlppError(UNDEFINED, f"Cannot resolve alias reference for undefined identifier {shown}", place)
        raise SqlppError(AMBIGUOUS, f"Cannot resolve ambiguous alias reference for identifier {shown}", place)
