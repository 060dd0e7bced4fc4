"""Where a request came from, for the audit: what it asked over which protocol, and what its client says of itself. No secret is in it.

May import `access` and `model`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from limnos.access.authentication import ANONYMOUS
from limnos.model.audit import TEXT_MAX, RequestOrigin, shorten_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limnos.access.authentication import Credential


def origin_of(
    target: tuple[str, str], headers: Mapping[bytes, bytes], *, peer: str, credential: Credential | None
) -> RequestOrigin:
    """Say where a request came from. `target` is the protocol's name and the operation's."""
    return RequestOrigin(*target, _short_text(headers.get(b"user-agent", b"")[:TEXT_MAX]), peer, proof_of(credential))


@lru_cache(1024)
def _short_text(text: bytes) -> str:
    return shorten_text(text.decode("utf-8", "replace"))


def proof_of(credential: Credential | None) -> str:
    """Say what proved who asks: a token by its id, a token of an outside issuer, a name that was believed, or nothing."""
    if credential is None:
        return ""
    if credential.user is None:
        return f"token {credential.token_id}"
    if credential.expires_ms is not None:
        return "issuer"
    return "" if credential.user == ANONYMOUS else "basic"
