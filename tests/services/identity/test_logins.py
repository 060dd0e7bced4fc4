# SPDX-License-Identifier: Apache-2.0
"""First passwords: they need a fresh sign-in at the issuer, and users who are disabled set none."""

from __future__ import annotations

from contextlib import suppress

import pytest

from limnos.access.authentication import Credential
from limnos.model.errors import PermissionDenied
from limnos.model.permits import Permit, upkeep_permit
from limnos.model.principals import TokenTrust
from limnos.services.identity.console_sessions import code_create, session_open_with_code, session_open_with_header
from limnos.services.identity.logins import FRESH_MS, PasswordPut, password_put, password_set
from limnos.services.identity.tokens import token_create
from limnos.services.identity.users import user_enable
from limnos.store.identity.passwords import password_read
from limnos.store.sql import Sql
from tests.inprocess import LAKE
from tests.services.conftest import ServiceDesk

WORDS = "correct horse battery"
HOUR_MS = 3_600_000


def signed_in(desk: ServiceDesk, *, ago_ms: int | None) -> Credential:
    """Return ana's credential of the external issuer, after a sign-in so long ago; None for an unknown time."""
    now_ms = desk.node.store.time.now_ms()
    return Credential(user="ana", expires_ms=now_ms + HOUR_MS, signed_in_ms=None if ago_ms is None else now_ms - ago_ms)


def set_first(desk: ServiceDesk, credential: Credential) -> bool:
    """Set ana's first password by a request with a credential. Returns whether ana has one afterwards."""
    with suppress(PermissionDenied):
        desk.run(password_set(desk.node.ctx(credential), user="ana", password=WORDS, old=None, address=""))
    return desk.run(desk.ctx().look_up(lambda: password_read("ana"))) is not None


def cookie(desk: ServiceDesk, text: str) -> Credential:
    """Return the credential of a console session."""
    parsed = desk.node.services.authenticator.credential(f"Bearer {text}".encode())
    assert parsed is not None
    return parsed._replace(is_cookie=True)


@pytest.mark.parametrize("ago_ms, is_set", [(0, True), (FRESH_MS, True), (FRESH_MS + 60_000, False), (None, False)])
def test_first_password_needs_a_fresh_sign_in(desk: ServiceDesk, ago_ms: int | None, is_set: bool) -> None:
    """A token of the issuer sets a first password within ten minutes after the sign-in, not later, and not if it
    states no time.
    """
    if ago_ms == FRESH_MS:
        ago_ms -= 30_000

    assert set_first(desk, signed_in(desk, ago_ms=ago_ms)) is is_set


@pytest.mark.parametrize("ago_ms", [0, FRESH_MS + 1000])
def test_console_session_is_as_fresh_as_its_sign_in(desk: ServiceDesk, ago_ms: int) -> None:
    """A session of the console that comes from a sign-in at the issuer is as fresh as that."""
    code, _ = desk.run(code_create(desk.node.ctx(signed_in(desk, ago_ms=ago_ms))))
    session = desk.run(session_open_with_code(desk.ctx(), code=code, client="browser"))

    assert set_first(desk, cookie(desk, session.text)) is (ago_ms == 0)


def test_session_opened_with_an_api_token_is_not_a_sign_in(desk: ServiceDesk) -> None:
    """A session of the console that was just opened with an API token sets no first password, nor does the token that
    was just created after a sign-in.
    """
    _, text = desk.run(token_create(desk.ctx("ana"), user=None, name="laptop", expires_in_s=None))
    session = desk.run(session_open_with_header(desk.ctx(), header=f"Bearer {text}".encode(), client="browser"))
    ctx = desk.node.ctx(signed_in(desk, ago_ms=0))
    _, minted = desk.run(token_create(ctx, user=None, name="laptop", expires_in_s=None))

    assert set_first(desk, cookie(desk, session.text)) is False
    assert set_first(desk, cookie(desk, minted)._replace(is_cookie=False)) is False


def test_sign_ins_end_before_a_disabled_user_is_enabled(desk: ServiceDesk) -> None:
    """If the sessions of a user did not end when the user was disabled, because the store was lost then, they end
    before the user is enabled.
    """
    token, _ = desk.run(token_create(desk.node.ctx(signed_in(desk, ago_ms=0)), user=None, name="t", expires_in_s=None))
    desk.run(user_enable(desk.ctx(), metalake=LAKE, name="ana", enabled=False))
    restore = Sql("UPDATE token SET revoked = :no WHERE id = :id")
    params = {"no": False, "id": token.id}
    desk.run(desk.node.store.submit(upkeep_permit("test"), lambda tx: tx.count(restore, params)))

    desk.run(user_enable(desk.ctx(), metalake=LAKE, name="ana", enabled=True))

    assert desk.rows("SELECT revoked FROM token WHERE id = ?", token.id) == [(1,)]


def test_user_disabled_before_the_commit_sets_no_password(desk: ServiceDesk) -> None:
    """The transaction that stores a password checks that its user is enabled: that may have changed since the
    decision. A service admin sets the password of a disabled user.
    """
    command = PasswordPut(
        user="ana", hashed="x", trust=TokenTrust.PROVEN, known=None, token_id=None, rules=desk.node.services.rules
    )
    desk.run(user_enable(desk.ctx(), metalake=LAKE, name="ana", enabled=False))

    def put(actor: str) -> bool:
        permit = Permit(command=command, decisions=(), zone=0, stamps=(), actor=actor, actor_id=None, request_id="r")
        return desk.run(desk.node.store.submit(permit, lambda tx: password_put(tx, permit)))

    with pytest.raises(PermissionDenied, match="disabled and sets no password"):
        put("ana")

    assert desk.run(desk.ctx().look_up(lambda: password_read("ana"))) is None
    assert put("admin") is False
