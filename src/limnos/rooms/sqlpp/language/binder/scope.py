# SPDX-License-Identifier: Apache-2.0
"""Scopes of variables, and the meaning of an identifier that is not a variable.

Must not know the syntax tree. A scope adds variables to an outer scope. `SlotCounter` numbers the slots of a statement.

The rule (asterixdb.md, 3.4): a variable takes precedence. Else, in the position of a source of rows (`sources`), the
identifier begins a dataset's name. Else it is a field of the only variable that this block's FROM has bound; with none
or several it is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from limnos.rooms.sqlpp.language.errors import SqlppError, TextPosition
from limnos.rooms.sqlpp.language.plan import Expression

UNDEFINED = 1073
AMBIGUOUS = 1074


class SlotCounter:
    """Assigns slot numbers to the variables of a statement."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def new(self) -> int:
        """Return the next free slot number."""
        self.count += 1
        return self.count - 1


class VariableScope:
    """The variables of a scope by name, and the outer scope.

    `fields_of` are the names and slots of variables of which a bare identifier may be a field; None if the scope is not
    that of a block. With `sources` an identifier that is not a variable is a dataset. `aliases` are functions that bind
    the expressions of SELECT, by alias. `group` is the group of the preceding GROUP BY.
    """

    __slots__ = ("aliases", "fields_of", "group", "outer", "sources", "variables")

    def __init__(
        self,
        outer: VariableScope | None,
        variables: Mapping[str, int] | None = None,
        *,
        fields_of: tuple[tuple[str, int], ...] | None = None,
        sources: bool = False,
        aliases: Mapping[str, Callable[[], Expression]] | None = None,
        group: GroupBinding | None = None,
    ) -> None:
        self.outer = outer
        self.variables = dict(variables or {})
        self.fields_of = fields_of
        self.sources = sources
        self.aliases = aliases or {}
        self.group = group

    def alias(self, name: str) -> Callable[[], Expression] | None:
        """Return the function that binds the SELECT expression with this alias; None if there is none, or an inner
        variable hides it.
        """
        scope: VariableScope | None = self
        while scope is not None and name not in scope.variables:
            if name in scope.aliases:
                return scope.aliases[name]
            scope = scope.outer
        return None

    def find(self, name: str) -> int | None:
        """Return the slot of a variable, innermost scope first; None if there is none."""
        scope: VariableScope | None = self
        while scope is not None:
            if name in scope.variables:
                return scope.variables[name]
            scope = scope.outer
        return None

    def groups_around(self, name: str) -> Iterator[GroupBinding]:
        """Yield the groups of outer blocks, innermost first, up to the scope that declares a variable of that name."""
        scope: VariableScope | None = self
        while scope is not None and name not in scope.variables:
            if scope.group is not None:
                yield scope.group
            scope = scope.outer

    def with_(self, variables: Mapping[str, int]) -> VariableScope:
        """Return an inner scope with these variables added."""
        return VariableScope(self, variables, fields_of=self.fields_of, sources=self.sources)

    def as_source(self, *, implies_fields: bool = False) -> VariableScope:
        """Return a scope with the same variables, for an expression that is a source of rows.

        With `implies_fields` an identifier that is not a dataset may be a field of the only variable of FROM.
        """
        return VariableScope(self, fields_of=self.fields_of if implies_fields else None, sources=True)

    def implied_variable(self, name: str, place: TextPosition) -> tuple[str, int]:
        """Return the variable of which a bare identifier is a field. Raises SqlppError if there is no candidate or
        several.
        """
        bound = self.fields_of or ()
        if len(bound) == 1:
            return bound[0]
        text = name.replace("\n", " ")
        if not bound:
            raise SqlppError(UNDEFINED, f"Cannot resolve alias reference for undefined identifier {text}", place)
        raise SqlppError(AMBIGUOUS, f"Cannot resolve ambiguous alias reference for identifier {text}", place)


class GroupBinding:
    """The names that expressions after GROUP BY may use: the keys, and the scope of an aggregate's argument.

    A key is a tuple of the outline of its expression, its slot and its name.
    """

    __slots__ = ("inside", "keys", "number", "sets")

    def __init__(
        self,
        keys: list[tuple[list[object], int, str]],
        inside: VariableScope,
        *,
        sets: tuple[tuple[int, ...], ...] = (),
        number: int | None = None,
    ) -> None:
        self.keys = keys
        self.inside = inside
        self.sets = sets
        """The keys of each grouping set, by their numbers in `keys`."""
        self.number = number
        """The slot of the number of a group's grouping set."""
