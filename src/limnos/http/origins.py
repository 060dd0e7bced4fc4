# SPDX-License-Identifier: Apache-2.0
"""Origins of requests for the audit: protocol, operation, user agent, client address, and kind of credential.

Must not know secrets.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from limnos.access.authentication import ANONYMOUS, Credential
from limnos.model.audit import TEXT_MAX, RequestOrigin, shorten_text


def origin_of(
    target: tuple[str, str], headers: Mapping[bytes, bytes], *, peer: str, credential: Credential | None
) -> RequestOrigin:
    """Return the origin of a request. `target` has the names of the protocol and of the operation."""
    return RequestOrigin(
        protocol=target[0],
        operation=target[1],
        client=_short_text(headers.get(b"user-agent", b"")[:TEXT_MAX]),
        peer=peer,
        credential=proof_of(credential),
    )


@lru_cache(1024)
def _short_text(text: bytes) -> str:
    return shorten_text(text.decode("utf-8", "replace"))


def proof_of(credential: Credential | None) -> str:
    """Return how the caller was authenticated: `token <id>`, `issuer`, `basic`, or "" for an anonymous caller."""
    if credential is None:
        return ""
    if credential.user is None:
        return f"token {credential.token_id}"
    if credential.expires_ms is not None:
        return "issuer"
    return "" if credential.user == ANONYMOUS else "basic"
