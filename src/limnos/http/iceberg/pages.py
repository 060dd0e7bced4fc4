# SPDX-License-Identifier: Apache-2.0
"""Pages of lists: tokens, sizes, and bodies joined from encoded names.

Must not know resources. A token is opaque to clients; it contains the name after which the next page begins.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence

from limnos.http.request import Request
from limnos.model.errors import BadRequest
from limnos.services.request.name_pages import ALL_NAMES, NamePage, PageRequest

PAGE_DEFAULT = 1000
PAGE_MAX = 100_000
_DIGITS_MAX = 20
JOINED_BYTES_MAX = 1 << 20
JOINED_ALL_BYTES_MAX = 16 << 20
JOINED_ENTRY_BYTES = 500
"""Limits of the cache of joined pages in bytes: per entry, in total, and the overhead of an entry besides its body and
names.
"""


def page_request_of(request: Request) -> PageRequest:
    """Return the requested page; all names if there is neither token nor size. Raises BadRequest for an invalid token
    or size.
    """
    if not request.query_string:
        return ALL_NAMES
    token, size = request.query("pageToken"), request.query("pageSize")
    if token is None and size is None:
        return ALL_NAMES
    return PageRequest(_decode(token) if token else "", size_of(size))


def size_of(text: str | None) -> int:
    """Parse a pageSize; the default if it is absent. More than `PAGE_MAX` is `PAGE_MAX`: it is an upper bound.

    Raises BadRequest unless it is a positive number.
    """
    if text is None or text == "":
        return PAGE_DEFAULT
    if not text.isascii() or not text.isdigit() or not text.strip("0"):
        raise BadRequest(f"pageSize must be a positive number, not {text[:20]}")
    return PAGE_MAX if len(text.lstrip("0")) > _DIGITS_MAX else min(int(text), PAGE_MAX)


def _encode(name: str) -> bytes:
    return base64.urlsafe_b64encode(name.encode()).rstrip(b"=")


def _decode(token: str) -> str:
    try:
        return base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise BadRequest("The pageToken was not issued by this server: start again without it") from None


def join_page(field: bytes, page: NamePage, *, before: bytes, after: bytes) -> bytes:
    """Build the body of a list under the field `field`: each encoded name, with `before` and `after` around it."""
    if page.whole and page.parts:
        items = _joined.items(tuple(page.parts), before, after)
    else:
        items = _join(page.parts, before, after)
    token = b"null" if page.last is None else b'"' + _encode(page.last) + b'"'
    return b"".join((b'{"', field, b'":[', items, b'],"next-page-token":', token, b"}"))


def _join(parts: Sequence[tuple[bytes, ...]], before: bytes, after: bytes) -> bytes:
    if not parts:
        return b""
    between = b"".join((after, b",", before))
    return b"".join((before, between.join(map(between.join, parts)), after))


class JoinedPageCache:
    """A cache of recently joined pages. The older half is evicted when it is too large."""

    def __init__(self) -> None:
        self._young: dict[tuple[object, ...], tuple[tuple[tuple[bytes, ...], ...], bytes]] = {}
        self._old: dict[tuple[object, ...], tuple[tuple[tuple[bytes, ...], ...], bytes]] = {}
        self._young_bytes = 0

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def items(self, parts: tuple[tuple[bytes, ...], ...], before: bytes, after: bytes) -> bytes:
        """Join encoded names, each with `before` and `after` around it. A result is reused while the same `parts` are
        passed.
        """
        key = (before, after, *map(id, parts))
        cached_items = self._young.get(key)
        if cached_items is not None:
            return cached_items[1]
        cached_items = self._old.pop(key, None)
        if cached_items is None:
            cached_items = parts, _join(parts, before, after)
        if len(cached_items[1]) <= JOINED_BYTES_MAX:
            self._young[key] = cached_items  # the entry keeps the parts alive, so their `id()`s are not used again
            self._young_bytes += JOINED_ENTRY_BYTES + 2 * len(cached_items[1])
            if self._young_bytes > JOINED_ALL_BYTES_MAX // 2:
                self._old, self._young, self._young_bytes = self._young, {}, 0
        return cached_items[1]


_joined = JoinedPageCache()
