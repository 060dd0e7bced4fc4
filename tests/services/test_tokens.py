"""API tokens: one's own freely, others' for service admins; wrong, expired and revoked ones are refused."""

from __future__ import annotations

import time

import pytest

from limnos.access import authentication
from limnos.access.authentication import Credential, user_of
from limnos.model.errors import BadRequest, Forbidden, NotFound, Unauthenticated
from limnos.services.scene import Scope
from limnos.services.tokens import token_create, token_revoke, tokens_list
from tests.services.conftest import Desk


def make(desk: Desk, user: str = "ana", *, of: str | None = None, expires_in_s: int | None = None) -> tuple[int, bytes]:
    """Make a token; returns its id and the header that uses it."""
    token, text = desk.run(token_create(desk.ctx(user), user=of, name="laptop", expires_in_s=expires_in_s))
    return token.id, f"Bearer {text}".encode()


def credential(desk: Desk, header: bytes) -> Credential:
    """Parse a header."""
    return desk.node.services.authenticator.credential(header)


def who(desk: Desk, header: bytes) -> str:
    """Who a header speaks for."""
    asks = credential(desk, header)
    return desk.run(desk.node.ctx(asks).read(Scope(), lambda scene: user_of(scene.view, asks)))


def test_token_speaks_for_its_user(desk: Desk) -> None:
    """A token is as good as its user, and its secret is stored nowhere."""
    _, header = make(desk)
    secret = header.decode().rsplit("_", 1)[1] if header.count(b"_") == 2 else header.decode().split("_", 2)[2]

    assert who(desk, header) == "ana"
    stored = desk.rows("SELECT * FROM token")
    assert secret not in repr(stored)
    assert all(secret.encode() not in each for row in stored for each in row if isinstance(each, bytes))


def test_expired_token_is_refused_the_moment_it_expires(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A remembered token is compared with the clock each time, without anything changing in the store."""
    _, header = make(desk, expires_in_s=60)
    real = time.time_ns
    assert who(desk, header) == "ana"

    monkeypatch.setattr(authentication.time, "time_ns", lambda: real() + 61 * 10**9)

    with pytest.raises(Unauthenticated, match="has expired"):
        who(desk, header)


@pytest.mark.parametrize("seconds", [0, -1, 10**12])
def test_expiry_must_make_sense(desk: Desk, seconds: int) -> None:
    """A token expires in the future, within a lifetime, or never."""
    with pytest.raises(BadRequest, match="A token expires in 1 to"):
        make(desk, expires_in_s=seconds)


def test_revoked_token_is_refused_at_the_next_request_on_every_node(desk: Desk) -> None:
    """A token that another node has just accepted is refused there after it was revoked here."""
    other = Desk(desk.lab)
    token_id, header = make(desk)
    assert who(other, header) == "ana"

    assert desk.run(token_revoke(desk.ctx("ana"), token_id=token_id)) is True

    with pytest.raises(Unauthenticated, match="was revoked"):
        who(other, header)
    assert desk.run(token_revoke(desk.ctx("ana"), token_id=token_id)) is False


def test_wrong_secret_of_an_existing_token(desk: Desk) -> None:
    """Knowing a token's id is worth nothing."""
    _, header = make(desk)

    with pytest.raises(Unauthenticated, match="wrong"):
        who(desk, header[:-1] + (b"A" if header[-1:] != b"A" else b"B"))


def test_absent_token_is_found_once_it_is_made(desk: Desk) -> None:
    """The absence of a token that was tried is no longer believed when a token of that id is made."""
    first, _ = make(desk)
    with pytest.raises(Unauthenticated):
        who(desk, f"Bearer lim_{first + 1}_guess".encode())

    made, header = make(desk)

    assert made == first + 1
    assert who(desk, header) == "ana"


@pytest.mark.parametrize("header", [
    b"Bearer", b"Bearer ", b"Bearer lim_", b"Bearer lim_1_", b"Bearer lim_x_y", b"Bearer lim_-1_y", b"Bearer \xff\xfe",
    b"Bearer lim_99999999999999999999_y", b"Basic", b"Basic !!!", b"Basic /////w==", b"Basic Og==", b"Digest x", b"lim_1_y",
])  # fmt: skip
def test_malformed_credentials_are_refused(desk: Desk, header: bytes) -> None:
    """Anything that is no credential is refused as such, not taken for nobody."""
    with pytest.raises(Unauthenticated):
        credential(desk, header)


@pytest.mark.parametrize("header", [b"", b"Bearer None"])
def test_no_credential_is_anonymous(desk: Desk, header: bytes) -> None:
    """No header, and PyIceberg's way of sending none, is the user anonymous."""
    assert who(desk, header) == "anonymous"


def test_anonymous_has_no_tokens(desk: Desk) -> None:
    """Nobody in particular makes and lists none."""
    with pytest.raises(Forbidden, match="say who you are"):
        make(desk, "anonymous")
    with pytest.raises(Forbidden):
        desk.run(desk.ctx("anonymous").read(Scope(), lambda scene: tokens_list(scene, "anonymous")))


def test_others_tokens_are_the_admins_affair(desk: Desk) -> None:
    """A user neither makes, lists nor revokes another's tokens, and does not learn which exist; a service admin may."""
    token_id, _ = make(desk, "bob")

    for work in (
        lambda: make(desk, "ana", of="bob"),
        lambda: desk.run(desk.ctx("ana").read(Scope(), lambda scene: tokens_list(scene, "bob"))),
        lambda: desk.run(desk.ctx("ana").read(Scope(), lambda scene: tokens_list(scene, None))),
        lambda: desk.run(token_revoke(desk.ctx("ana"), token_id=token_id)),
        lambda: desk.run(token_revoke(desk.ctx("ana"), token_id=token_id + 1)),
    ):
        with pytest.raises(Forbidden):
            work()
    assert [token.id for token in desk.run(desk.ctx().read(Scope(), lambda scene: tokens_list(scene, None)))] == [
        token_id
    ]
    assert desk.run(token_revoke(desk.ctx(), token_id=token_id)) is True
    with pytest.raises(NotFound, match="does not exist"):
        desk.run(token_revoke(desk.ctx(), token_id=token_id + 1))
