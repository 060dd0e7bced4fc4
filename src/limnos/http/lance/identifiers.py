"""Which object a request is about: the identifier in its path, its body's, and the database that LanceDB's clients name.

May import `model`, `names`, `services.request.request_view` and the shared modules of `limnos.http`. The first name of an identifier is a catalog of the server's
metalake. Clients differ in how they spell the same thing; what differs is settled here, and nowhere else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from limnos.model.errors import BadRequest
from limnos.names import lance
from limnos.names.lance import DELIMITER_DEFAULT
from limnos.names.parts import check_levels, quote_for_message
from limnos.services.request.request_view import RequestScope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limnos.http.request import Request
    from limnos.names.path import Levels
    from limnos.services.request.context import Context

DATABASE = b"x-lancedb-database"
METALAKE = b"x-limnos-metalake"
_REMOTE = b"LanceDB-"
"""How the User-Agent of LanceDB's remote clients begins."""

_EMPTY = frozenset({b"", b"null"})


class IdentifiedBody(msgspec.Struct):
    """What a body may say of what it is about, beside the path."""

    id: list[str] | None = None


class LanceObjectPath(NamedTuple):
    """An object by its whole identifier: a catalog's name, then what lies below; empty for the root."""

    path: Levels
    scope: RequestScope
    levels: Levels

    @property
    def is_root(self) -> bool:
        """Say whether it is what catalogs lie in."""
        return not self.path


def is_remote(request: Request) -> bool:
    """Say whether a client speaks LanceDB's dialect."""
    return DATABASE in request.headers or request.headers.get(b"user-agent", b"").startswith(_REMOTE)


def delimiter_of(request: Request) -> str:
    """Return what joins names in this request."""
    return lance.check_delimiter(request.query("delimiter") or DELIMITER_DEFAULT)


def database_of(request: Request) -> Levels:
    """Return the catalog that all names of the request are relative to, where a client names one."""
    named = request.headers.get(DATABASE)
    try:
        return check_levels((named.decode(),)) if named else ()
    except UnicodeDecodeError:
        raise BadRequest("The header x-lancedb-database is no UTF-8: name a catalog of this server") from None


def metalake_of(request: Request, ctx: Context) -> str:
    """Return the metalake whose catalogs are meant: the server's own, unless the request says which.

    Lance's clients send headers that they are told to, and no parameters of ours. Raises BadRequest.
    """
    named = request.query("metalake")
    if named is None and METALAKE in request.headers:
        try:
            named = request.headers[METALAKE].decode()
        except UnicodeDecodeError:
            raise BadRequest("The header x-limnos-metalake is no UTF-8: name a metalake of this server") from None
    return named or ctx.services.defaults.metalake


def place_of(request: Request, ctx: Context, *, body: IdentifiedBody | None = None) -> LanceObjectPath:
    """Read what a request is about; a path without an identifier means the root.

    Raises BadRequest for a body that names something else than the path, InvalidName.
    """
    return place_at(request, ctx, path=path_of(request, body=body))


def path_of(request: Request, *, body: IdentifiedBody | None = None) -> Levels:
    """Read the identifier that a request names, as it is sent. Raises BadRequest, InvalidName."""
    raw = request.params[0] if request.params else b""
    stated = body.id if body is not None else None
    return body_path(raw, stated, delimiter=delimiter_of(request), plain_plus=is_remote(request))


def place_at(request: Request, ctx: Context, *, path: Sequence[str]) -> LanceObjectPath:
    """Return what an identifier in a body is about. Raises InvalidName."""
    whole = (*database_of(request), *check_levels(path))
    metalake = metalake_of(request, ctx)
    return LanceObjectPath(whole, RequestScope(metalake, whole[0]) if whole else RequestScope(metalake), whole[1:])


def body_path(raw: bytes, stated: list[str] | None, *, delimiter: str, plain_plus: bool = False) -> Levels:
    """Read an identifier from a path, and from the body that may state it too. Raises BadRequest where they differ, InvalidName.

    The native client encodes paths as forms, so a plus is a space; `plain_plus` where it stands for itself.
    """
    if stated is None:
        return lance.decode_path(raw if plain_plus else raw.replace(b"+", b"%20"), delimiter=delimiter)
    path, told = lance.decode_path(raw, delimiter=delimiter), check_levels(stated)
    if not lance.same(path, told):
        raise BadRequest(
            f"The path names {quote_for_message('.'.join(path))} and the body's id {quote_for_message('.'.join(told))}: send one of them, or the same in both"
        )
    return told


async def body_of(request: Request) -> bytes:
    """Read a body; where nothing has to be said clients send none, or JSON's null."""
    data = await request.body()
    return b"{}" if data.strip() in _EMPTY else data
