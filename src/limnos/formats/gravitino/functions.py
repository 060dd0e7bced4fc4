# SPDX-License-Identifier: Apache-2.0
"""Registered functions: checks of definitions, and changes applied to them (reference section 2.3).

Pure. Must not know engines: types are stored unchanged. Two definitions that the same call could match are ambiguous,
and refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from limnos.formats.iceberg.json_types import Json, as_object, preview_value, text_at
from limnos.formats.iceberg.schema import DEPTH_MAX
from limnos.model.errors import BadRequest

TABLE: Final = "table"
TYPES: Final = {"scalar": "scalar", "aggregate": "aggregate", "agg": "aggregate", TABLE: TABLE}
RUNTIMES: Final = ("SPARK", "TRINO")
TEXT_OF: Final = {"SQL": "sql", "JAVA": "class_name", "PYTHON": "handler"}
"""Languages, and the field that each requires."""
DEFINITIONS_MAX: Final = 200
_INNER: Final = {"list": ("elementType",), "map": ("keyType", "valueType")}
_WORDS: Final = {"external": "catalogString", "unparsed": "unparsedType"}


class _FunctionPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    """Base class of the parts of a function's definition."""


class FunctionParameter(_FunctionPart, frozen=True):
    """A parameter of a function. A call may omit parameters with default values from the end of the list."""

    name: str
    data_type: object
    comment: str | None = None
    default_value: object = None


class ReturnColumn(_FunctionPart, frozen=True):
    """A column in the result of a table function."""

    name: str
    data_type: object
    comment: str | None = None


class FunctionResources(_FunctionPart, frozen=True):
    """Files that an implementation needs: JAR files, other files and archives."""

    jars: list[str] | None = None
    files: list[str] | None = None
    archives: list[str] | None = None


class FunctionImplementation(_FunctionPart, frozen=True, kw_only=True):
    """The implementation of a definition for one runtime."""

    language: str
    runtime: str
    resources: FunctionResources | None = None
    properties: dict[str, str] | None = None
    sql: str | None = None
    class_name: str | None = None
    handler: str | None = None
    code_block: str | None = None


class FunctionDefinition(_FunctionPart, frozen=True):
    """One signature of a function."""

    parameters: list[FunctionParameter] | None = None
    return_type: object = None
    return_columns: list[ReturnColumn] | None = None
    impls: list[FunctionImplementation] | None = None


class Function(_FunctionPart, frozen=True):
    """A function's type, determinism and definitions; its name and comment belong to the node."""

    function_type: str
    deterministic: bool
    definitions: tuple[FunctionDefinition, ...]


class _FunctionEdit(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", tag_field="@type"):
    """Base class of the changes to a function."""


class AddDefinition(_FunctionEdit, frozen=True, tag="addDefinition"):
    """Add a definition, which is a signature with its implementations, to a function."""

    definition: FunctionDefinition


class RemoveDefinition(_FunctionEdit, frozen=True, tag="removeDefinition"):
    """Remove the definition with these parameters from a function."""

    parameters: list[FunctionParameter]


class AddImpl(_FunctionEdit, frozen=True, tag="addImpl"):
    """Add an implementation for another runtime."""

    parameters: list[FunctionParameter]
    implementation: FunctionImplementation


class UpdateImpl(_FunctionEdit, frozen=True, tag="updateImpl"):
    """Replace the implementation for a runtime."""

    parameters: list[FunctionParameter]
    runtime: str
    implementation: FunctionImplementation


class RemoveImpl(_FunctionEdit, frozen=True, tag="removeImpl"):
    """Remove the implementation for a runtime."""

    parameters: list[FunctionParameter]
    runtime: str


FunctionChange = AddDefinition | RemoveDefinition | AddImpl | UpdateImpl | RemoveImpl


def encode_function(function: Function) -> str:
    """Encode a function as JSON for the record of its node."""
    return msgspec.json.encode(function).decode()


def function_read(text: str) -> Function:
    """Decode a function from the JSON in the record of its node."""
    return msgspec.json.decode(text, type=Function)


def function_json(function: Function) -> Json:
    """Return a function as Gravitino's JSON: only fields with values, but always parameters and implementations."""
    definitions = []
    for each in function.definitions:
        defaults: Json = {"parameters": [], "impls": []}
        definitions.append(defaults | as_object(msgspec.to_builtins(each), "definition"))
    return {"functionType": function.function_type, "deterministic": function.deterministic, "definitions": definitions}


def check_function(function: Function, *, before: Sequence[FunctionDefinition] = ()) -> Function:
    """Check a function and normalize the case of its keywords.

    `before` are the definitions that it has already: an older release stored some without an implementation. Raises
    BadRequest for an invalid or ambiguous definition.
    """
    word = TYPES.get(function.function_type.lower())
    if word is None:
        raise BadRequest(f"A function must be scalar, aggregate or table, not {preview_value(function.function_type)}")
    if not 0 < len(function.definitions) <= DEFINITIONS_MAX:
        raise BadRequest(f"A function must have 1 to {DEFINITIONS_MAX} definitions, not {len(function.definitions)}")
    definitions = tuple([_definition(each, word) for each in function.definitions])
    if any(not each.impls and each not in before for each in definitions):
        raise BadRequest("A definition needs at least one implementation (impls): add one, or remove the definition")
    _refuse_ambiguous(definitions)
    return Function(word, function.deterministic, definitions)


def change_function(function: Function, changes: Sequence[FunctionChange]) -> Function:
    """Apply changes in order. Raises BadRequest if a change does not fit the function, or makes it invalid."""
    for change in changes:
        definitions = _changed_definitions(function, change)
        changed_function = Function(function.function_type, function.deterministic, definitions)
        function = check_function(changed_function, before=function.definitions)
    return function


def _changed_definitions(function: Function, change: FunctionChange) -> tuple[FunctionDefinition, ...]:
    if isinstance(change, AddDefinition):
        return (*function.definitions, change.definition)
    at = _position(function, change.parameters)
    definition, before, after = function.definitions[at], function.definitions[:at], function.definitions[at + 1 :]
    if isinstance(change, RemoveDefinition):
        if not before and not after:
            raise BadRequest("A function needs at least one definition: drop the function instead")
        return before + after
    return (
        *before,
        msgspec.structs.replace(definition, impls=_implementations(definition.impls or [], change)),
        *after,
    )


def _implementations(
    implementations: list[FunctionImplementation], change: AddImpl | UpdateImpl | RemoveImpl
) -> list[FunctionImplementation]:
    if isinstance(change, AddImpl):
        return [*implementations, change.implementation]  # `check_function` refuses a second one for a runtime
    runtime = change.runtime.upper()
    at = next((index for index, each in enumerate(implementations) if each.runtime == runtime), None)
    if at is None:
        raise BadRequest(f"The definition has no implementation for runtime {preview_value(change.runtime)}")
    return [
        *implementations[:at],
        *([change.implementation] if isinstance(change, UpdateImpl) else []),
        *implementations[at + 1 :],
    ]


def _position(function: Function, parameters: list[FunctionParameter]) -> int:
    """Return the index of the definition with these parameter names and types. Raises BadRequest if there is none."""
    requested = [(each.name, _type_text(each.data_type)) for each in parameters]
    for index, each in enumerate(function.definitions):
        if [(one.name, _type_text(one.data_type)) for one in each.parameters or ()] == requested:
            return index
    parameters_text = ", ".join(f"{name} {kind}" for name, kind in requested)
    raise BadRequest(f"The function has no definition with the parameters ({parameters_text})")


def _definition(definition: FunctionDefinition, function_type: str) -> FunctionDefinition:
    optional, seen_names = False, set[str]()
    for each in definition.parameters or ():
        _column(each, seen_names, what="parameter")
        if optional and each.default_value is None:
            raise BadRequest(
                f"Parameter {preview_value(each.name)} has no default value but follows a parameter that has one"
            )
        optional = each.default_value is not None
        if optional:
            as_object(each.default_value, f"The default value of parameter {preview_value(each.name)}")
    if function_type == TABLE:
        columns = set[str]()
        for column in definition.return_columns or ():
            _column(column, columns, what="column")
        if not columns or definition.return_type is not None:
            raise BadRequest("A definition of a table function must have returnColumns and no returnType")
    elif definition.return_type is None or definition.return_columns:
        raise BadRequest("A definition of a scalar or aggregate function must have returnType and no returnColumns")
    else:
        check_type(definition.return_type, "the returned value")
    impls = [_implementation(each) for each in definition.impls or ()]
    runtimes = [each.runtime for each in impls]
    if len(set(runtimes)) < len(runtimes):
        raise BadRequest(f"A definition may have one implementation per runtime, not several: {', '.join(runtimes)}")
    return msgspec.structs.replace(definition, impls=impls)


def _column(argument: FunctionParameter | ReturnColumn, seen: set[str], *, what: str) -> None:
    if not argument.name.strip() or argument.name in seen:
        raise BadRequest(
            f"Each {what} needs a unique name; this one is empty or a duplicate: {preview_value(argument.name)}"
        )
    seen.add(argument.name)
    check_type(argument.data_type, f"{what} {preview_value(argument.name)}")


def _implementation(implementation: FunctionImplementation) -> FunctionImplementation:
    language, runtime = implementation.language.upper(), implementation.runtime.upper()
    if language not in TEXT_OF:
        raise BadRequest(
            f"An implementation must be in one of {', '.join(TEXT_OF)}, not {preview_value(implementation.language)}"
        )
    if runtime not in RUNTIMES:
        raise BadRequest(
            f"An implementation must be for one of {', '.join(RUNTIMES)}, not {preview_value(implementation.runtime)}"
        )
    text_field = TEXT_OF[language]
    if not (getattr(implementation, text_field) or "").strip():
        raise BadRequest(f"An implementation in {language} needs a value for {text_field.replace('_n', 'N')}")
    return msgspec.structs.replace(implementation, language=language, runtime=runtime)


def check_type(value: object, what: str, *, depth: int = 0) -> None:
    """Check the structure of a type in Gravitino's JSON, but not the names of primitive types.

    Raises BadRequest for a malformed or too deeply nested type. `what` names the type in the message.
    """
    if depth > DEPTH_MAX:
        raise BadRequest(f"The type of {what} is nested more than {DEPTH_MAX} levels deep")
    if isinstance(value, str) and value.strip():
        return
    fields, where = as_object(value, f"The type of {what}"), f"The type of {what}"
    kind = text_at(fields, "type", where=where).lower()
    if kind in _WORDS:
        text_at(fields, _WORDS[kind], where=where)
        return
    for inner in _child_types(fields, kind, where=where):
        check_type(inner, what, depth=depth + 1)


def _child_types(fields: Json, kind: str, *, where: str) -> Iterator[object]:
    """Yield the child types of a struct, list, map or union type. Raises BadRequest for any other type."""
    if kind in ("struct", "union"):
        parts = fields.get("fields" if kind == "struct" else "types")
        if not isinstance(parts, list) or not parts:
            raise BadRequest(f"{where}: a {kind} needs its parts")
        for part in parts:
            yield as_object(part, where).get("type") if kind == "struct" else part
        return
    if kind not in _INNER:
        raise BadRequest(f"{where}: there is no type {preview_value(kind)} with parts; use struct, list, map or union")
    for key in _INNER[kind]:
        yield fields.get(key)


def _type_text(value: object) -> str:
    """Return the canonical string of a type, equal for equal types, to compare signatures."""
    return value.strip().lower() if isinstance(value, str) else msgspec.json.encode(value, order="sorted").decode()


def _refuse_ambiguous(definitions: Sequence[FunctionDefinition]) -> None:
    definition_numbers: dict[tuple[str, ...], int] = {}
    for index, each in enumerate(definitions):
        for call in _argument_types(each):
            other = definition_numbers.setdefault(call, index)
            if other != index:
                raise BadRequest(
                    f"Definitions {other + 1} and {index + 1} of the function are both possible for a call with"
                    f" ({', '.join(call)})"
                )


def _argument_types(definition: FunctionDefinition) -> Iterator[tuple[str, ...]]:
    """Yield the argument types of each possible call of a definition.

    Trailing parameters with default values may be omitted.
    """
    parameters = definition.parameters or []
    kinds = [_type_text(each.data_type) for each in parameters]
    required_count = sum(each.default_value is None for each in parameters)
    for length in range(required_count, len(kinds) + 1):
        yield tuple(kinds[:length])
