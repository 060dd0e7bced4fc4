# SPDX-License-Identifier: Apache-2.0
"""Notices: the message about a form's success that the next page shows, signed with the session's secret.

Pure. The redirect after a form has the message in the query parameter `done`. A link of another site may have any text
there, so a page shows only a message with a valid signature. The key is the session's secret, which every node reads
from the cookie: the server stores nothing, and a notice of one session is invalid in all others. The time is signed,
too: a page that is loaded again later does not show the notice.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

from limnos.names.percent import quote, unquote_form

PARAMETER: Final = "done"
NOTICE_CHARS_MAX: Final = 300
SIGNATURE_CHARS: Final = 32
NOTICE_AGE_MS: Final = 60_000
"""The maximum age of a notice that a page shows, in milliseconds."""
_PREFIX: Final = f"{PARAMETER}=".encode()


def signed_location(location: bytes, secret: bytes, *, now_ms: int) -> bytes:
    """Return the target of a redirect with the signature and the time of its notice; unchanged without a notice."""
    path, mark, query = location.partition(b"?")
    if not mark:
        return location
    return path + b"?" + b"&".join(_signed_pair(pair, secret, now_ms=now_ms) for pair in query.split(b"&"))


def _signed_pair(pair: bytes, secret: bytes, *, now_ms: int) -> bytes:
    if not pair.startswith(_PREFIX):
        return pair
    text = unquote_form(pair.removeprefix(_PREFIX))[:NOTICE_CHARS_MAX]
    signed = f"{now_ms // 1000}.{text}"
    return _PREFIX + quote(f"{_signature(signed, secret)}.{signed}").encode()


def verified_notice(value: str | None, secret: bytes | None, *, now_ms: int) -> str:
    """Return the text of a signed notice; empty if it is missing, too old, or not signed with this session's secret."""
    if not value or secret is None:
        return ""
    signature, _, signed = value.partition(".")
    if not hmac.compare_digest(signature.encode(), _signature(signed, secret).encode()):
        return ""
    seconds, _, text = signed.partition(".")
    return text if now_ms - int(seconds) * 1000 <= NOTICE_AGE_MS else ""


def _signature(signed: str, secret: bytes) -> str:
    digest = hmac.new(secret, b"timed notice of the console\0" + signed.encode(), hashlib.sha256)
    return digest.hexdigest()[:SIGNATURE_CHARS]
