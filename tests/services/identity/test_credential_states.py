# SPDX-License-Identifier: Apache-2.0
"""States of tokens and secrets: each reason for which a credential is of no effect."""

from __future__ import annotations

import msgspec
import pytest

from limnos.model.entities import Token
from limnos.model.principals import CredentialState, TokenTrust
from limnos.services.identity.credential_states import state_of
from limnos.services.request.defaults import AccessSettings
from limnos.store.identity.principals import UserEntry

TOKEN = Token(
    id=50,
    user="ana",
    name="",
    secret_hash=b"",
    created_at=0,
    expires_at=None,
    revoked=False,
    trust=TokenTrust.PROVEN,
    root_id=50,
)
RULES = AccessSettings(True, frozenset({"root"}))
ENABLED, DISABLED, NAMESAKE = UserEntry(True, 0), UserEntry(False, 0), UserEntry(True, 60)


@pytest.mark.parametrize(
    "changes, entries, state",
    [
        ({}, [ENABLED], CredentialState.VALID),
        ({}, [DISABLED, ENABLED], CredentialState.VALID),
        ({"revoked": True}, [ENABLED], CredentialState.REVOKED),
        ({"revoked": True}, [], CredentialState.REVOKED),
        ({"expires_at": 1_000}, [ENABLED], CredentialState.EXPIRED),
        ({"expires_at": 1_001}, [ENABLED], CredentialState.VALID),
        ({"trust": TokenTrust.OPEN}, [ENABLED], CredentialState.UNTRUSTED),
        ({}, [], CredentialState.USER_MISSING),
        ({}, [NAMESAKE], CredentialState.USER_MISSING),
        ({"root_id": 60}, [NAMESAKE], CredentialState.VALID),
        ({}, [NAMESAKE, DISABLED], CredentialState.USER_DISABLED),
        ({"user": "root"}, [], CredentialState.VALID),
        ({"user": "root"}, [DISABLED], CredentialState.VALID),
        ({"user": "root"}, [NAMESAKE], CredentialState.USER_MISSING),
    ],
)
def test_state_names_why_a_token_is_of_no_effect(
    changes: dict[str, object], entries: list[UserEntry], state: CredentialState
) -> None:
    """A token is valid only if it is unrevoked, unexpired, trusted, and of an enabled user or a service admin."""
    token = msgspec.structs.replace(TOKEN, **changes)

    assert state_of(token, RULES, now_ms=1_000, entries=entries) is state


def test_token_needs_no_user_without_access_control() -> None:
    """Without access control every name may do everything, so that a token of a missing user is valid."""
    rules = AccessSettings(False, frozenset())

    assert state_of(TOKEN, rules, now_ms=0, entries=[]) is CredentialState.VALID
