"""Notices: the sentence about a form's success that the next page shows, signed with the session.

May import `names` and the standard library. Pure. The redirect after a form has the sentence as the query parameter
`done`. A link of another site may have any text there, so a page shows only a sentence with a signature. The key is
the session's secret, which every node reads from the cookie: the server stores nothing, and a notice of one session is
invalid in all others.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

from limnos.names.percent import quote, unquote_form

PARAMETER: Final = "done"
NOTICE_CHARS_MAX: Final = 300
SIGNATURE_CHARS: Final = 32
_PREFIX: Final = f"{PARAMETER}=".encode()


def signed_location(location: bytes, secret: bytes) -> bytes:
    """Return the target of a redirect with a signature before its notice. Without a notice it stays as it is."""
    path, mark, query = location.partition(b"?")
    if not mark:
        return location
    return path + b"?" + b"&".join(_signed_pair(pair, secret) for pair in query.split(b"&"))


def _signed_pair(pair: bytes, secret: bytes) -> bytes:
    if not pair.startswith(_PREFIX):
        return pair
    text = unquote_form(pair.removeprefix(_PREFIX))[:NOTICE_CHARS_MAX]
    return _PREFIX + quote(f"{_signature(text, secret)}.{text}").encode()


def verified_notice(value: str | None, secret: bytes | None) -> str:
    """Return the text of a signed notice; empty if it is missing or was not signed with this session's secret."""
    if not value or secret is None:
        return ""
    signature, _, text = value.partition(".")
    is_own = hmac.compare_digest(signature.encode(), _signature(text, secret).encode())
    return text if is_own else ""


def _signature(text: str, secret: bytes) -> str:
    digest = hmac.new(secret, b"notice of the console\0" + text.encode(), hashlib.sha256)
    return digest.hexdigest()[:SIGNATURE_CHARS]
