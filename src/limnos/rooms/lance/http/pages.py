# SPDX-License-Identifier: Apache-2.0
"""Pages of lists: a token that is opaque to clients, and a limit.

Must not know resources. Without a limit a list is complete. A limit of zero gives an empty page without a token.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence

from limnos.http.request import Request
from limnos.model.errors import BadRequest
from limnos.services.request.name_pages import PageRequest

LIMIT_MAX = 1_000_000
_DIGITS_MAX = 10


def page_request_of(request: Request) -> PageRequest:
    """Parse the page token and the limit of a request. Raises BadRequest if either is invalid."""
    token = request.query("page_token")
    return PageRequest(decode_token(token) if token else "", _limit(request.query("limit")))


def _limit(text: str | None) -> int | None:
    if text is None or text == "":
        return None
    if not text.isascii() or not text.isdigit() or len(text) > _DIGITS_MAX:
        raise BadRequest(f"limit must be a non-negative integer of at most 10 digits, not {text[:20]}")
    return min(int(text), LIMIT_MAX)


def encode_token(name: str) -> str:
    """Encode a page token: the name after which the next page begins."""
    return base64.urlsafe_b64encode(name.encode()).rstrip(b"=").decode()


def decode_token(token: str) -> str:
    """Decode a page token into the name after which the page begins. Raises BadRequest for a token that this server did
    not create.
    """
    try:
        return base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise BadRequest("The page_token was not issued by this server: start again without it") from None


def page(field: str, names: Sequence[object], *, last: str | None) -> dict[str, object]:
    """Build the body of a list response. `last` is the name to continue after; None on the last page."""
    body: dict[str, object] = {field: names}
    return body if last is None else {**body, "page_token": encode_token(last)}
