# SPDX-License-Identifier: Apache-2.0
"""File sources of statements: the supported adapters, and the locations that statements may read.

Must not know any wire format. A file is read only below a root that the settings allow for this (`sqlpp.file_roots`),
and never in the server's own data or warehouse, regardless of the roots.
"""

from __future__ import annotations

from typing import Final

from limnos.files import is_within, normalise
from limnos.formats.iceberg.class_properties import find_class_property
from limnos.model.errors import BadRequest
from limnos.rooms.sqlpp.language import tree
from limnos.rooms.sqlpp.language.errors import TextPosition, compilation
from limnos.rooms.sqlpp.language.jobs import ExternalSource
from limnos.rooms.sqlpp.services.requests.errors import invalid_operation
from limnos.services.request.context import Context

ADAPTERS: Final = ("localfs",)
FORMATS: Final = ("adm", "json", "csv", "tsv", "delimited-text", "parquet")
_HOSTS: Final = ("", "localhost", "127.0.0.1", "asterix_nc1", "nc1")


def check_file_source(
    ctx: Context, adapter: str, *, options: tuple[tree.Option, ...], at: TextPosition
) -> ExternalSource:
    """Check a statement's file source and return it. Raises SqlppError for an unknown adapter or format, for an absent
    path or format, for an option that names a class, and for a location that statements may not read.
    """
    if adapter.lower() not in ADAPTERS:
        raise invalid_operation(f"Unknown adapter: {adapter}; there is {', '.join(ADAPTERS)}", at)
    arguments = {each.name.lower(): each.value for each in options}
    class_property = find_class_property(arguments)
    if class_property is not None:
        raise invalid_operation(
            f"Option {class_property[:200]} names a class or a setting of a library, and file sources have none: remove"
            " it",
            at,
        )
    if "path" not in arguments:
        raise compilation("Unspecified parameter: path", at)
    texts = [each.strip() for each in arguments["path"].split(",")]
    for text in texts:
        if "://" not in text and not text.startswith("/"):
            raise invalid_operation(
                f"Invalid path: {text[:200]} is neither host:///directory/file nor /directory/file", at
            )
    if "format" not in arguments:
        raise compilation("Unspecified parameter: format", at)
    kind = arguments["format"].lower()
    if kind not in FORMATS:
        raise invalid_operation(f"Unknown format: {arguments['format']}; there are {', '.join(FORMATS)}", at)
    paths = ",".join(_readable_location(ctx, text, at=at) for text in texts)
    rest = tuple((name, value) for name, value in arguments.items() if name not in ("path", "format"))
    roots = ctx.services.defaults.file_roots
    return ExternalSource(
        adapter=adapter.lower(),
        options=(("path", paths), ("format", kind), *rest),
        within=roots,
        outside=closed_directories(ctx),
    )


def closed_directories(ctx: Context) -> tuple[str, ...]:
    """Return the directories from which statements may never read, even below an allowed root: the server's data
    directory and the warehouse.
    """
    defaults = ctx.services.defaults
    return (*defaults.allowed.own_directories, defaults.warehouse)


def local_location(text: str, at: TextPosition) -> str:
    """Return the local path of `host:///directory/file`, or of a plain path. Raises SqlppError for other locations."""
    host, result, rest = text.partition("://")
    path = rest if result else text
    if result and host not in (*_HOSTS, "file"):
        raise invalid_operation(f"Files must be on the server's own machine: {text[:200]} names another", at)
    try:
        return normalise(f"file://{path}" if path.startswith("/") else f"file:///{path}")
    except BadRequest as error:
        raise invalid_operation(error.message, at) from None


def _readable_location(ctx: Context, text: str, *, at: TextPosition) -> str:
    """Return the location of a file that statements may read. Raises SqlppError if it is outside the allowed roots."""
    location = local_location(text, at)
    inside = is_within(location, ctx.services.defaults.file_roots)
    if not inside or is_within(location, closed_directories(ctx)):
        raise invalid_operation(
            f"{location} is not below a directory that statements may read: the server's operator can name one (setting"
            " sqlpp.file_roots)",
            at,
        )
    return location
