# SPDX-License-Identifier: Apache-2.0
"""`create metalake | catalog | namespace | fileset | model`, and objects of declared kinds.

Engines create tables: Spark, PyIceberg, Trino.
"""

from __future__ import annotations

import difflib
import operator
import shlex
import sys
from collections.abc import Callable, Mapping
from inspect import Parameter as Argument
from inspect import Signature
from typing import TYPE_CHECKING, Annotated, Final, get_args

import msgspec
from cyclopts import App, Parameter

from limnos.cli.catalog.metadata_values import UNNAMED
from limnos.cli.common import DEFAULTS, Comment, CommonFlags, Property, pairs_of, properties_of
from limnos.cli.failures import UsageError
from limnos.cli.output import show_done, visible
from limnos.client import ClientError, NotFoundError
from limnos.model.declared_kinds import DECLARED, DeclaredKind
from limnos.names import display

if TYPE_CHECKING:
    from limnos.client import Client

app = App(name="create")


@app.command
def metalake(
    name: str, /, *, comment: Comment = None, property: Property = None, common: CommonFlags = DEFAULTS
) -> None:
    """Create a metalake. Only for service admins.

    Parameters
    ----------
    name
        1 to 64 ASCII letters, digits and `_`.
    """
    with common.client() as client:
        created = client.metalakes.create(name, comment=comment, properties=properties_of(property))
    result = {"kind": "metalake", "name": created.name, "properties": created.properties}
    show_done(f"created metalake {created.name}", result, output_format=common.output_format)


@app.command
def catalog(
    name: str,
    /,
    *,
    warehouse: str | None = None,
    storage: str | None = None,
    type: str = "relational",
    provider: str | None = None,
    comment: Comment = None,
    property: Property = None,
    common: CommonFlags = DEFAULTS,
) -> None:
    """Create a catalog, by default of Iceberg tables; `--type` and `--provider` select another kind.

    Parameters
    ----------
    name
        1 to 64 ASCII letters, digits, `_` and `-`.
    warehouse
        The location of its tables: a directory or object store URL.
    storage
        The named storage of the server's settings whose credentials it uses.
    type
        The type of its objects: `relational`, `fileset`, `messaging` or `model`.
    provider
        The provider, such as `jdbc-postgresql`; by default `lakehouse-iceberg`, or the one of the type.
    """
    _check_type(type)
    stated_properties = {"warehouse": warehouse, "storage": storage}
    properties = properties_of(property) | {key: value for key, value in stated_properties.items() if value}
    with common.client() as client:
        created = client.catalogs.create(name, type=type, provider=provider, comment=comment, properties=properties)
    result = {"kind": "catalog", "name": created.name, "path": [created.name], "properties": created.properties}
    show_done(f"created catalog {created.name}", result, output_format=common.output_format)


_TYPES = ("relational", "fileset", "messaging", "model")
_TYPE_WORDS = {"iceberg": "relational", "lance": "relational --provider lakehouse-generic", "kafka": "messaging"}
"""Words that people type for types of catalogs, and the flags that are meant."""


def _check_type(text: str) -> None:
    """Raise UsageError for a type that no catalog has, with the near one."""
    word = text.lower()
    if word in _TYPES:
        return
    near = difflib.get_close_matches(word, _TYPES, n=1, cutoff=0.6)
    meant = _TYPE_WORDS.get(word) or next(iter(near), "")
    plain = "leave --type out for tables of Iceberg, which engines, as DuckDB, Spark and Trino, read and write"
    hint = f"did you mean --type {meant}?" if meant else plain
    raise UsageError(f"--type takes one of {', '.join(_TYPES)}, not '{text}'", hint=hint)


@app.command
def namespace(
    path: str,
    /,
    *,
    parents: Annotated[bool, Parameter(negative="", help="Make missing parents too, all or nothing.")] = False,
    comment: Comment = None,
    property: Property = None,
    common: CommonFlags = DEFAULTS,
) -> None:
    """Create a namespace, at any depth.

    Parameters
    ----------
    path
        Catalog and levels, as `main.raw.nyc`.
    """
    with common.client() as client:
        created = client.namespaces.create(path, properties=properties_of(property), comment=comment, parents=parents)
    name = display.render(created.path)
    result = {"kind": "namespace", "name": name, "path": created.path, "properties": created.properties}
    show_done(f"created namespace {name}", result, output_format=common.output_format)


@app.command
def fileset(
    path: str,
    /,
    *,
    external: Annotated[bool, Parameter(negative="")] = False,
    location: Annotated[list[str] | None, Parameter(negative="")] = None,
    comment: Comment = None,
    property: Property = None,
    common: CommonFlags = DEFAULTS,
) -> None:
    """Create a fileset, in a catalog of type `fileset`.

    Parameters
    ----------
    path
        Catalog, schema and name, as `files.raw.scans`.
    external
        An external fileset: a drop does not delete its files.
    location
        URL of its storage location, or NAME=URL, which may be repeated. The default is below its schema's or catalog's
        location.
    """
    locations = [each if "://" not in each.partition("=")[0] else f"{UNNAMED}={each}" for each in location or ()]
    with common.client() as client:
        created = client.filesets.create(
            path,
            external=external,
            locations=pairs_of(locations, flag="--location main=s3://lake/scans"),
            comment=comment,
            properties=properties_of(property),
        )
    result = {"kind": "fileset", "name": path, "type": created.type, "locations": created.storage_locations}
    show_done(
        f"created fileset {path}", result | {"properties": created.properties}, output_format=common.output_format
    )


@app.command
def model(path: str, /, *, comment: Comment = None, property: Property = None, common: CommonFlags = DEFAULTS) -> None:
    """Create a model without versions, in a catalog of type `model`. `limnos.client` and Gravitino's clients add them.

    Parameters
    ----------
    path
        Catalog, schema and name, as `ml.prod.churn`.
    """
    with common.client() as client:
        register = client.models.register(path, comment=comment, properties=properties_of(property))
    result = {"kind": "model", "name": path, "properties": register.properties}
    show_done(f"created model {path}", result, output_format=common.output_format)


def _flag_type(field: msgspec.structs.FieldInfo) -> object:
    """Return the type of an own field's flag, with its help. A tuple's flag is repeated, and has no negative form."""
    notes = [each.description for each in get_args(field.type) if isinstance(each, msgspec.Meta)]
    help_text = "".join(filter(None, notes))
    return Annotated[field.type, Parameter(help=help_text, negative="" if field.default == () else None)]


_BOUNDS: Final[Mapping[str, tuple[Callable[[float, float], bool], str]]] = {
    "ge": (operator.ge, "of at least"),
    "gt": (operator.gt, "above"),
    "le": (operator.le, "of at most"),
    "lt": (operator.lt, "below"),
}
"""The constraints of numbers in a field's type: whether a value satisfies one, and its words."""


def _check_bounds(declared: DeclaredKind, values: Mapping[str, object]) -> None:
    """Raise UsageError for a number that an own field cannot have."""
    for field in msgspec.structs.fields(declared.fields):
        value = values.get(field.name)
        notes = [each for each in get_args(field.type) if isinstance(each, msgspec.Meta)]
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        for name, (is_satisfied, words) in _BOUNDS.items():
            bounds = [bound for note in notes if (bound := getattr(note, name)) is not None]
            if any(not is_satisfied(value, bound) for bound in bounds):
                number = "a whole number" if isinstance(value, int) else "a number"
                word = declared.kind.word
                raise UsageError(
                    f"--{field.name.replace('_', '-')} takes {number} {words} {bounds[0]}, not {value}",
                    hint=f"'limnos create {word} --help' explains its arguments",
                )


def _sibling_names(client: Client, path: str, *, typed: object) -> tuple[str, ...]:
    """Return names of objects in the namespace of `path`, from names or whole paths, and note those that do not exist.
    Raises UsageError for the path of an object elsewhere.
    """
    namespace, names = display.parse(path)[:-1], []
    for each in typed if isinstance(typed, (list, tuple)) else ():
        *above, name = display.parse(each)
        if above and tuple(above) != namespace:
            raise UsageError(
                f"{each} is not in {display.render(namespace)}: it names objects of its own namespace",
                hint=f"create it beside them, as '{display.render((*above, display.parse(path)[-1]))}'",
            )
        names.append(name)
        try:
            client.objects.kind(display.render((*namespace, name)))
        except NotFoundError:
            where = display.render(namespace)
            print(f"note: {where} has no object {name}: 'limnos list {where}' has its names", file=sys.stderr)
        except ClientError:
            continue
    return tuple(names)


def _create_command(declared: DeclaredKind) -> Callable[..., None]:
    """Build `create <kind>`: a path, a flag for each own field, and the flags that all of these commands have."""
    word = declared.kind.word

    def create(
        path: str,
        /,
        *,
        comment: str | None = None,
        property: list[str] | None = None,
        common: CommonFlags = DEFAULTS,
        **fields: object,
    ) -> None:
        _check_bounds(declared, fields)
        with common.client() as client:
            siblings = {
                name: _sibling_names(client, path, typed=fields[name]) for name in with_siblings if name in fields
            }
            created = client.declared(declared).create(
                path, declared.fields(**{**fields, **siblings}), comment=comment, properties=properties_of(property)
            )
        field_values = msgspec.structs.asdict(created.fields)
        if declared.advised and not field_values[declared.advised]:
            sets = f"{shlex.join(['limnos', 'set', path, '--field'])} {declared.advised}={declared.advised.upper()}"
            print(visible(f"note: it has no {declared.advised}: '{sets}' sets it"), file=sys.stderr)
        result = {"kind": word, "name": path, "properties": created.properties, **field_values}
        show_done(f"created {word} {path}", result, output_format=common.output_format)

    own_fields = msgspec.structs.fields(declared.fields)
    with_siblings = [
        each.name
        for each in own_fields
        if any((note.extra or {}).get("siblings") for note in get_args(each.type) if isinstance(note, msgspec.Meta))
    ]
    flags = [
        *((each.name, each.default, _flag_type(each)) for each in own_fields),
        ("comment", None, Comment),
        ("property", None, Property),
        ("common", DEFAULTS, CommonFlags),
    ]
    arguments = [
        Argument("path", Argument.POSITIONAL_ONLY, annotation=str),
        *(Argument(name, Argument.KEYWORD_ONLY, default=default, annotation=type_) for name, default, type_ in flags),
    ]
    create.__signature__ = Signature(arguments)  # type: ignore[attr-defined]
    create.__annotations__ = {each.name: each.annotation for each in arguments}
    create.__doc__ = f"Create a {word.replace('_', ' ')}: {declared.about}"
    return create


for _declared in DECLARED:
    app.command(_create_command(_declared), name=_declared.kind.word)
