# SPDX-License-Identifier: Apache-2.0
"""Decoding raw path segments into names: the prefix, namespaces, tables. Pure, so results are cached.

Must not know access rules.
"""

from __future__ import annotations

from functools import lru_cache

from limnos.http.request import Request
from limnos.model.errors import NotFound
from limnos.model.kinds import Kind
from limnos.names import iceberg
from limnos.names.parts import Levels
from limnos.names.percent import unquote_form
from limnos.services.lookup.definer_rights import ViewChain, check_view_chain
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope

PLAIN_PLUS = b"GoIceberg/"
"""The prefix of iceberg-go's User-Agent."""

scope_of_prefix = lru_cache(4096)(lambda raw: RequestScope(*iceberg.decode_prefix(raw)))
levels_of = lru_cache(16384)(iceberg.decode_path)
name_of = lru_cache(16384)(iceberg.decode_name)


def split_path(request: Request, ctx: Context, expected: int) -> tuple[RequestScope, tuple[bytes, ...]]:
    """Return the scope of a path, and its `expected` other parameters. A route without a prefix means the default
    catalog.
    """
    params = request.params
    if params and (b"+" in params[-1] or b"+" in params[-expected]) and _keeps_plus(request):
        params = tuple(map(iceberg.keep_plus, params))
    if len(params) > expected:
        return scope_of_prefix(params[0]), params[1:]
    defaults = ctx.services.defaults
    return RequestScope(defaults.metalake, defaults.catalog), params


def table_of(request: Request, ctx: Context) -> tuple[RequestScope, Levels, str]:
    """Return the scope, the namespace and the name of a table in a path.

    Java's clients load a missing table `shop.files` also as a metadata table of a table `shop`, without a namespace,
    and go on only if that does not exist. Raises NotFound for it.
    """
    scope, params = split_path(request, ctx, 2)
    name = name_of(params[1])
    if not params[0]:
        raise NotFound(f"Table does not exist: {iceberg.render((name,))}", kind=Kind.TABLE.word)
    return scope, levels_of(params[0]), name


def referencing_views_of(request: Request) -> ViewChain:
    """Parse `referenced-by`: the views through which an object is read, the outermost first, with levels joined as in a
    path.

    Views are separated by commas. A client that encodes the whole value encodes these commas, too; then a comma inside
    a name is encoded twice.
    """
    raw = request.query_raw("referenced-by")
    if not raw:
        return ()
    views = raw.split(b",")
    if len(views) == 1 and b"%2c" in raw.lower():
        decoded = unquote_form(raw).encode().split(b",")
        if all(b"\x1f" in view for view in decoded):  # otherwise the comma belongs to a name
            views = decoded
    return check_view_chain(tuple(map(iceberg.decode_path, views)))


def _keeps_plus(request: Request) -> bool:
    """Return whether a `+` in the client's paths is a plus sign: iceberg-go does not encode it, as RFC 3986 allows."""
    return request.headers.get(b"user-agent", b"").startswith(PLAIN_PLUS)
