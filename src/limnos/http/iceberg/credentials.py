# SPDX-License-Identifier: Apache-2.0
"""Callers without a credential: the refusals that become 401 instead of 403.

Has no business rules.
"""

from __future__ import annotations

from limnos.http.refusals import lacks_credential
from limnos.model.errors import AuthenticationFailed, LimnosError

_MISSING = (
    "No credential was sent, and this server has no user anonymous. Send a token as 'Authorization: Bearer lim_…':"
    " clients read it from their property token=lim_…; make one with 'limnos create token'. Or have an administrator"
    " add the user anonymous"
)


def as_unauthenticated(error: LimnosError) -> LimnosError:
    """Convert a refusal that is due to a missing credential to AuthenticationFailed.

    Other errors are returned unchanged.
    """
    return AuthenticationFailed(_MISSING) if lacks_credential(error) else error
