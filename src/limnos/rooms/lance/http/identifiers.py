# SPDX-License-Identifier: Apache-2.0
"""The object of a request: parsed from the identifier in its path or body, and the database of LanceDB's clients.

Has no business rules. The first name of an identifier is a catalog of the server's metalake. All differences between
clients' spellings are handled here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from limnos.http.request import Request
from limnos.model.errors import BadRequest
from limnos.names import lance
from limnos.names.lance import DELIMITER_DEFAULT
from limnos.names.parts import check_levels, quote_for_message
from limnos.names.path import Levels
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope

DATABASE = b"x-lancedb-database"
METALAKE = b"x-limnos-metalake"
_REMOTE = b"LanceDB-"
"""The prefix of the User-Agent of LanceDB's remote clients."""

_EMPTY = frozenset({b"", b"null"})


class IdentifiedBody(msgspec.Struct):
    """The fields by which a body may name its object, besides the path."""

    id: list[str] | None = None


class LanceObjectPath(NamedTuple):
    """An object by its full identifier: a catalog's name, then the levels below it; empty for the root."""

    path: Levels
    scope: RequestScope
    levels: Levels

    @property
    def is_root(self) -> bool:
        """Whether the object is the root namespace, which contains the catalogs."""
        return not self.path


def is_remote(request: Request) -> bool:
    """Return whether the client is a remote client of LanceDB, which uses a dialect of the protocol; detected by its
    headers.
    """
    return DATABASE in request.headers or request.headers.get(b"user-agent", b"").startswith(_REMOTE)


def delimiter_of(request: Request) -> str:
    """Return the delimiter between the names of an identifier: the query parameter `delimiter`, or the default. Raises
    InvalidName for an invalid one.
    """
    return lance.check_delimiter(request.query("delimiter") or DELIMITER_DEFAULT)


def database_of(request: Request) -> Levels:
    """Return the catalog to which all names of the request are relative (header `x-lancedb-database`); empty without
    the header. Raises BadRequest if the header is not UTF-8, InvalidName for an invalid name.
    """
    header = request.headers.get(DATABASE)
    try:
        return check_levels((header.decode(),)) if header else ()
    except UnicodeDecodeError:
        raise BadRequest("The header x-lancedb-database is not UTF-8: name a catalog of this server") from None


def metalake_of(request: Request, ctx: Context) -> str:
    """Return the metalake of the request: the server's default, unless the request names another.

    The query parameter `metalake` takes precedence over the header `x-limnos-metalake`, for clients that can only be
    configured to send headers. Raises BadRequest for a header that is not UTF-8.
    """
    metalake_name = request.query("metalake")
    if metalake_name is None and METALAKE in request.headers:
        try:
            metalake_name = request.headers[METALAKE].decode()
        except UnicodeDecodeError:
            raise BadRequest("The header x-limnos-metalake is not UTF-8: name a metalake of this server") from None
    return metalake_name or ctx.services.defaults.metalake


def place_of(request: Request, ctx: Context, *, body: IdentifiedBody | None = None) -> LanceObjectPath:
    """Return the object of a request. A path without an identifier means the root.

    Raises BadRequest if the body names another object than the path, InvalidName for an invalid name.
    """
    return place_at(request, ctx, path=path_of(request, body=body))


def path_of(request: Request, *, body: IdentifiedBody | None = None) -> Levels:
    """Return the identifier of a request as it was sent. Raises BadRequest if path and body differ, InvalidName for an
    invalid name.
    """
    raw = request.params[0] if request.params else b""
    body_id = body.id if body is not None else None
    return body_path(raw, body_id, delimiter=delimiter_of(request), plain_plus=is_remote(request))


def place_at(request: Request, ctx: Context, *, path: Sequence[str]) -> LanceObjectPath:
    """Return the object of an identifier in a body. Raises InvalidName for an invalid name, BadRequest for a header
    that is not UTF-8.
    """
    full_path = (*database_of(request), *check_levels(path))
    metalake = metalake_of(request, ctx)
    return LanceObjectPath(
        full_path, RequestScope(metalake, full_path[0]) if full_path else RequestScope(metalake), full_path[1:]
    )


def body_path(raw: bytes, stated: list[str] | None, *, delimiter: str, plain_plus: bool = False) -> Levels:
    """Decode the identifier in a path, and compare it with the one in the body, if any.

    The native client form-encodes paths, so a plus is a space, unless `plain_plus`. Raises BadRequest if path and body
    differ, InvalidName for an invalid name.
    """
    if stated is None:
        return lance.decode_path(raw if plain_plus else raw.replace(b"+", b"%20"), delimiter=delimiter)
    path, levels = lance.decode_path(raw, delimiter=delimiter), check_levels(stated)
    if not lance.is_same_path(path, levels):
        raise BadRequest(
            f"The path names {quote_for_message('.'.join(path))} and the body's id"
            f" {quote_for_message('.'.join(levels))}: send one of them, or the same in both"
        )
    return levels


async def body_of(request: Request) -> bytes:
    """Read the body; `{}` if it is empty or JSON's null, both of which clients send for a request without fields."""
    data = await request.body()
    return b"{}" if data.strip() in _EMPTY else data
