# SPDX-License-Identifier: Apache-2.0
"""Wrappers of handlers: they check the media type's version, decode the body, and add the operation to error messages.

Must not know resources.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

import msgspec

from limnos.http.request import Request
from limnos.http.response import Response
from limnos.http.route_targets import Handler
from limnos.model.errors import LimnosError, NotFound, UnsupportedOperation
from limnos.names.errors import InvalidName
from limnos.names.percent import unquote_form, unquote_once_if_encoded
from limnos.rooms.gravitino.http.errors import SUBJECT, UnknownVersion
from limnos.services.request.context import Context

_VERSION = re.compile(rb"application/vnd\.gravitino\.v(\d+)\+json")
_SERVED = frozenset({b"1", b"2"})
"""The supported versions of the protocol. Version 2 differs from version 1 only in the body that attaches tags."""
_ACCESS_OFF = (
    "Access control is off, so users, groups, roles, grants and owners cannot be managed: set access.enabled "
    "(start the server with --access on)"
)


class GravitinoRequestBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A request body. Unknown fields are refused, as by Gravitino's server."""


@contextmanager
def catalog_not_found_as_object() -> Iterator[None]:
    """A context manager that converts NotFound for a catalog to NotFound for an object (NoSuchMetadataObjectException).

    Clients expect this exception for every kind of securable object.
    """
    try:
        yield
    except NotFound as error:
        if error.kind != "catalog":
            raise
        raise NotFound(error.message, kind="object") from error


class NamedBody(GravitinoRequestBody, frozen=True):
    """A body that creates a schema, table or fileset.

    The name is percent-decoded once. Released Python and Java clients encode it in the body as they do in a path, and
    no name created here may contain a percent sign.
    """

    name: str

    def __post_init__(self) -> None:
        """Decode the name if it is encoded."""
        msgspec.structs.force_setattr(self, "name", unquote_once_if_encoded(self.name))


B = TypeVar("B")
B_contra = TypeVar("B_contra", contravariant=True)


class BodyHandler(Protocol[B_contra]):
    """A handler that receives a decoded body."""

    def __call__(self, request: Request, ctx: Context, /, *, body: B_contra) -> Awaitable[Response]:
        """Handle a request whose body is decoded, and return its response."""


def names_of(request: Request) -> tuple[str, ...]:
    """Return the names in a request's path, form-decoded exactly once, with `+` as a space. Raises InvalidName for a
    malformed escape or invalid UTF-8.
    """
    return tuple([unquote_form(raw) for raw in request.params])


def check_version(request: Request) -> None:
    """Raise UnknownVersion for an unsupported version of the protocol. `Accept` is checked before `Content-Type`."""
    for header in (b"accept", b"content-type"):
        match = _VERSION.search(request.headers.get(header, b""))
        if match is not None:
            if match[1] not in _SERVED:
                raise UnknownVersion(f"Version {match[1].decode()} of the protocol is not served: accept version 1")
            return


def wrap_handler(sentence: str, handler: Handler, *, access: bool = False) -> Handler:
    """Wrap a handler: the messages of its errors, except refusals of access, begin with `sentence`, whose `{0}`, `{1}`
    … are the names in the path.

    `access` marks routes that raise UnsupportedOperation if access control is off.
    """

    async def call(request: Request, ctx: Context) -> Response:
        check_version(request)
        _check_access(ctx, needed=access)
        try:
            return await handler(request, ctx)
        except LimnosError as error:
            raise _with_subject(error, sentence.format(*_decode_path_for_message(request))) from error.__cause__

    return call


def wrap_body_handler(sentence: str, shape: type[B], handler: BodyHandler[B], *, access: bool = False) -> Handler:
    """Wrap a handler that receives a body decoded as `shape`. The sentence may use its fields, such as
    `{body.name}`.
    """

    async def call(request: Request, ctx: Context) -> Response:
        check_version(request)
        _check_access(ctx, needed=access)
        body = Request.decode(await request.body(), shape)
        try:
            return await handler(request, ctx, body=body)
        except LimnosError as error:
            raise _with_subject(
                error, sentence.format(*_decode_path_for_message(request), body=body)
            ) from error.__cause__

    return call


def _check_access(ctx: Context, *, needed: bool) -> None:
    if needed and not ctx.services.rules.access_enabled:
        raise UnsupportedOperation(_ACCESS_OFF)


def _with_subject(error: LimnosError, sentence: str) -> LimnosError:
    error.context[SUBJECT] = sentence
    return error


def _decode_path_for_message(request: Request) -> list[str]:
    """Return the names in a path for a message, even if they are malformed."""
    texts = []
    for raw in request.params:
        try:
            texts.append(unquote_form(raw))
        except InvalidName:
            texts.append(raw.decode("latin-1"))
    return texts
