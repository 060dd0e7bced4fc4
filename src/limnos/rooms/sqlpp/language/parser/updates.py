# SPDX-License-Identifier: Apache-2.0
"""Parses UPDATE with its SET and array steps.

Must not know the effect of statements.
"""

from __future__ import annotations

from limnos.rooms.sqlpp.language.parser.functions import FunctionParser
from limnos.rooms.sqlpp.language.tree import ArrayDelete, ArrayInsert, ArrayUpdate, Assignment, Update, UpdateStep


class UpdateParser(FunctionParser):
    """Parses the UPDATE statement."""

    def update(self) -> Update:
        """Parse `UPDATE dataset [AS variable] steps [WHERE condition] [RETURNING value]`."""
        at = self.expect("UPDATE").place
        target = self.name()
        variable = self._alias() or target.last
        steps = self._steps(variable)
        where = self.optional("WHERE")
        returning = self.expression() if self.accept("RETURNING") else None
        return Update(at=at, target=target, variable=variable, steps=steps, where=where, returning=returning)

    def _alias(self) -> str | None:
        return self.identifier() if self.accept("AS") or self.named else None

    def _steps(self, variable: str) -> tuple[UpdateStep, ...]:
        """Parse one or more steps: `SET path = value, …`, or changes of arrays in parentheses.

        Raises SqlppError for other words.
        """
        steps: list[UpdateStep] = []
        self.enter()
        while self.kind in ("SET", "("):
            if self.accept("SET"):
                steps.append(self._assignment(variable, follows=False))
                while self.accept(","):
                    steps.append(self._assignment(variable, follows=True))
            else:
                self.expect("(")
                steps.append(self._array_step(variable))
                self.expect(")")
        self.leave()
        if not steps:
            raise self.error()
        return tuple(steps)

    def _path(self, variable: str) -> tuple[str, ...]:
        """Parse a path, which may omit the leading variable. Returns the path with the variable."""
        path = self.path()
        return path if path[0] == variable else (variable, *path)

    def _assignment(self, variable: str, *, follows: bool) -> Assignment:
        at, path = self.at, self._path(variable)
        self.expect("=")
        return Assignment(at, path, self.expression(), follows)

    def _array_step(self, variable: str) -> UpdateStep:
        """Parse an array step: INSERT INTO, DELETE FROM or UPDATE with the path of an array."""
        at = self.at
        if self.accept("INSERT"):
            self.expect("INTO")
            path = self._path(variable)
            position = self._signed_integer() if self.accept("AT") else None
            return ArrayInsert(at, path, position, self.expression())
        if self.accept("DELETE"):
            self.expect("FROM")
            path, item = self._path(variable), self._alias()
            number = self.identifier() if self.accept("AT") else None
            return ArrayDelete(at=at, path=path, variable=item, position=number, where=self.optional("WHERE"))
        self.expect("UPDATE")
        path = self._path(variable)
        item = self._alias() or path[-1]
        number = self.identifier() if self.accept("AT") else None
        return ArrayUpdate(
            at=at, path=path, variable=item, position=number, steps=self._steps(item), where=self.optional("WHERE")
        )

    def _signed_integer(self) -> int:
        """Parse an integer with an optional sign."""
        sign = -1 if self.accept("-") else 1
        return sign * self.integer()
