"""Pages of listings: tokens, slices, and bodies joined from names that are encoded already.

May import `model` only. A token is opaque to clients and says after which name to go on, so pages stay right while
names come and go.
"""

from __future__ import annotations

import base64
import binascii
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, NamedTuple

from limnos.model.errors import BadRequest

if TYPE_CHECKING:
    from limnos.http.request import Request
    from limnos.model.entities import Listing

PAGE_DEFAULT = 1000
PAGE_MAX = 100_000


class Page(NamedTuple):
    """Encoded names of one page, and the token of the next; None when this is the last."""

    names: list[bytes] | tuple[bytes, ...]
    token: str | None


def page_of(request: Request, found: Listing, positions: list[int] | None) -> Page:
    """Cut the page that a request asks for: everything when it sends no token and no size."""
    token, size_text = request.query("pageToken"), request.query("pageSize")
    if token is None and size_text is None:
        return Page(found.encoded if positions is None else [found.encoded[i] for i in positions], None)
    size = _size(size_text)
    begin = bisect_right(found.names, _decode(token)) if token else 0
    if positions is None:
        end = begin + size
        return Page(found.encoded[begin:end], _encode(found.names[end - 1]) if end < len(found.names) else None)
    first = bisect_left(positions, begin)
    chosen = positions[first : first + size]
    last = first + size >= len(positions)
    return Page([found.encoded[i] for i in chosen], None if last else _encode(found.names[chosen[-1]]))


def _size(text: str | None) -> int:
    if text is None or text == "":
        return PAGE_DEFAULT
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= PAGE_MAX:
        raise BadRequest(f"pageSize is a number from 1 to {PAGE_MAX}, not {text}")
    return int(text)


def _encode(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode().rstrip("=")


def _decode(token: str) -> str:
    try:
        return base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise BadRequest("The pageToken is not one that this server gave: start again without it") from None


def join_page(field: bytes, page: Page, *, before: bytes, after: bytes) -> bytes:
    """Build a list body: every name between `before` and `after`."""
    between = b"".join((after, b",", before))
    items = b"".join((before, between.join(page.names), after)) if page.names else b""
    token = b"null" if page.token is None else b'"' + page.token.encode() + b'"'
    return b"".join((b'{"', field, b'":[', items, b'],"next-page-token":', token, b"}"))
