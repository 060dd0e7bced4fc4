# SPDX-License-Identifier: Apache-2.0
"""Parses definitions of functions: in SQL++, in the language of a library, and declared for one request.

Must not know existing libraries.
"""

from __future__ import annotations

from limnos.rooms.sqlpp.language import tree
from limnos.rooms.sqlpp.language.errors import TextPosition, syntax
from limnos.rooms.sqlpp.language.parser.storage import StorageParser
from limnos.rooms.sqlpp.language.tokens import IDENTIFIER, INTEGER, QUOTED

_ARITY_MAX = 1000


class FunctionParser(StorageParser):
    """Parses CREATE, DECLARE and DROP of functions."""

    def function_name(self) -> tuple[tree.DottedName, str | None]:
        """Parse `a.b.f` or `a.b.library#f`: the name without the library, and the library."""
        name = self.name()
        if not self.accept("#"):
            return name, None
        return tree.DottedName(name.at, (*name.parts[:-1], self.identifier())), name.last

    def create_function(
        self, at: TextPosition, *, or_replace: bool
    ) -> tree.CreateFunction | tree.CreateExternalFunction:
        """Parse `CREATE [OR REPLACE] FUNCTION name(parameters) …`, with a body in SQL++ or in a library.

        Raises SqlppError for a return type of a SQL++ function, and for an IF NOT EXISTS after OR REPLACE.
        """
        self.expect("FUNCTION")
        if_not_exists = self.if_not_exists()
        name = self.name()
        parameters = self.function_parameters()
        if_not_exists = self.if_not_exists(is_parsed=if_not_exists)
        if if_not_exists and or_replace:
            raise syntax("Unexpected IF NOT EXISTS", self.before)
        returns = self.type() if self.accept_returns() else None
        if self.accept("AS"):
            identifiers = self.comma_separated(self.string)
            self.expect("AT")
            library = self.name()
            return tree.CreateExternalFunction(
                at=at,
                name=name,
                or_replace=or_replace,
                if_not_exists=if_not_exists,
                parameters=parameters,
                returns=returns,
                identifiers=identifiers,
                library=library,
                settings=self.settings(),
            )
        if returns is not None:
            raise syntax(f"Unexpected return type declaration for function {name.last}", at)
        names = parameter_names(parameters, name.last, at=at)
        return tree.CreateFunction(
            at=at,
            name=name,
            or_replace=or_replace,
            if_not_exists=if_not_exists,
            parameters=names,
            body=self.function_body(),
        )

    def accept_returns(self) -> bool:
        """Consume RETURNS, which is a keyword only here. Returns whether it was consumed."""
        if self.kind != IDENTIFIER or self.token.image.upper() != "RETURNS":
            return False
        self.advance()
        return True

    def function_body(self) -> tree.Expression:
        """Parse `{ expression or query }`."""
        self.expect("{")
        body = self.body()
        self.expect("}")
        return body

    def function_parameters(self) -> tuple[tree.TypedParameter, ...] | None:
        """Parse parameters in parentheses; None for `(...)`, which makes the function variadic."""
        self.expect("(")
        parameters: tuple[tree.TypedParameter, ...] | None = ()
        if self.accept("."):
            self.expect(".")
            self.expect(".")
            parameters = None
        elif self.kind != ")":
            parameters = self.comma_separated(self.function_parameter)
        self.expect(")")
        return parameters

    def function_parameter(self) -> tree.TypedParameter:
        """Parse `name [[:] T]`."""
        at = self.at
        name = self.identifier()
        if self.accept(":") or self.kind in (IDENTIFIER, QUOTED, "[", "{{", "{", "OPEN", "CLOSED"):
            return tree.TypedParameter(at, name, self.type())
        return tree.TypedParameter(at, name, None)

    def declare_function(self) -> tree.DeclareFunction:
        """Parse `DECLARE FUNCTION name(parameters) { body }`."""
        at = self.expect("DECLARE").place
        self.expect("FUNCTION")
        name = self.identifier()
        names = parameter_names(self.function_parameters(), name, at=at)
        return tree.DeclareFunction(at, name, names, self.function_body())

    def drop_function(self, at: TextPosition) -> tree.DropFunction:
        """Parse DROP FUNCTION: `f@2`, `f(a, b)`, `f(2)` or `f(...)`."""
        self.expect("FUNCTION")
        if_exists = self.if_exists()
        name, library = self.function_name()
        if self.accept("@"):
            arity = self.arity()
        elif self.kind == "(" and self.peek().kind == INTEGER:
            self.advance()
            arity = self.arity()
            self.expect(")")
        else:
            parameters = self.function_parameters()
            arity = tree.VARIADIC if parameters is None else len(parameters)
        return tree.DropFunction(
            at=at, name=name, library=library, arity=arity, if_exists=self.if_exists(is_parsed=if_exists)
        )

    def arity(self) -> int:
        """Parse the arity of a function. Raises SqlppError if it is too large."""
        at, image = self.at, self.token.image
        arity = self.integer()
        if arity > _ARITY_MAX:
            raise syntax(f"Invalid arity: {image[:20]}", at)
        return arity


def parameter_names(
    parameters: tuple[tree.TypedParameter, ...] | None, function: str, *, at: TextPosition
) -> tuple[str, ...] | None:
    """Return the parameters' names. Raises SqlppError for a typed parameter, which only an external function may
    have.
    """
    if parameters is None:
        return None
    for parameter in parameters:
        if parameter.type is not None:
            raise syntax(f"Unexpected type declaration for parameter {parameter.name} in function {function}", at)
    return tuple(parameter.name for parameter in parameters)
