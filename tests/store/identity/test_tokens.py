# SPDX-License-Identifier: Apache-2.0
"""API tokens in the store: they belong to zone 0, only hashes of their secrets are stored, and a revocation is
final.
"""

from __future__ import annotations

from limnos.model.principals import TokenPurpose, TokenTrust
from limnos.store.identity.tokens import token_read, tokens_read
from limnos.store.tx import Tx
from tests.backends import StoreLab


def make(
    tx: Tx,
    user: str = "ana",
    *,
    expires_at: int | None = None,
    opened_by: int | None = None,
    signed_in_at: int | None = None,
    purpose: TokenPurpose = TokenPurpose.API,
) -> int:
    """Insert a token of a user. Returns its id."""
    return tx.tokens.create(
        user=user,
        name="laptop",
        secret_hash=b"\x00\xff" * 16,
        expires_at=expires_at,
        trust=TokenTrust.PROVEN,
        opened_by=opened_by,
        signed_in_at=signed_in_at,
        purpose=purpose,
    ).id


def test_token_reads_back(lab: StoreLab) -> None:
    """A token is found by id with its hash, expiry and trust. Its creation moves the server's access revision."""
    token = lab.write(
        lambda tx: tx.tokens.create(
            user="ana", name="n", secret_hash=b"\x00\xff", expires_at=12345, trust=TokenTrust.OPEN, root_id=7
        )
    )

    assert lab.load(token_read(token.id)) == token
    assert (token.expires_at, token.revoked, token.trust, token.root_id) == (12345, False, TokenTrust.OPEN, 7)
    assert lab.clock(0) == (1, 1)


def test_tokens_are_listed_by_user(lab: StoreLab) -> None:
    """The tokens of one user, or of all users, are listed in the order of their creation."""
    mine, other, late = (lab.write(lambda tx, user=user: make(tx, user)) for user in ("ana", "bob", "ana"))

    assert [token.id for token in lab.load(tokens_read("ana"))] == [mine, late]
    assert [token.id for token in lab.load(tokens_read(None))] == [mine, other, late]
    assert lab.load(tokens_read("nobody")) == ()


def test_second_revocation_changes_nothing(lab: StoreLab) -> None:
    """A revoked token stays in the list as revoked. A second revocation changes nothing, and its result says so."""
    token_id = lab.write(make)
    token = lab.load(token_read(token_id))

    assert lab.write(lambda tx: tx.tokens.revoke(token)) is True
    clock = lab.clock(0)
    assert lab.write(lambda tx: tx.tokens.revoke(token)) is False

    assert lab.clock(0) == clock == (2, 2)
    assert lab.load(token_read(token_id)).revoked is True
    assert lab.write(lambda tx: tx.tokens.by_id(token_id)).revoked is True


def test_revoking_a_token_revokes_its_descendants(lab: StoreLab) -> None:
    """A token that is revoked with its family takes those with it that were created with it, at any depth, and no
    other.
    """
    first, other = lab.write(make), lab.write(make)
    child = lab.write(lambda tx: make(tx, opened_by=first))
    grandchild = lab.write(lambda tx: make(tx, opened_by=child))

    assert lab.write(lambda tx: tx.tokens.revoke_family(tx.tokens.by_id(first))) == 3

    assert [each.id for each in lab.load(tokens_read("ana")) if each.revoked] == [first, child, grandchild]
    assert lab.load(token_read(other)).revoked is False


def test_closing_ends_what_comes_from_sign_ins(lab: StoreLab) -> None:
    """All tokens of a user that come from a sign-in end together, also API tokens that were created with a session."""
    api_token, foreign = lab.write(make), lab.write(lambda tx: make(tx, "bob", signed_in_at=5))
    session = lab.write(lambda tx: make(tx, purpose=TokenPurpose.SESSION))
    minted = lab.write(lambda tx: make(tx, signed_in_at=5))

    lab.write(lambda tx: tx.tokens.close("ana"))

    states = {each: lab.load(token_read(each)).revoked for each in (api_token, foreign, session, minted)}
    assert states == {api_token: False, foreign: False, session: True, minted: True}


def test_extension_is_later_and_only_of_valid_tokens(lab: StoreLab) -> None:
    """A valid token gets a later expiry, without a new access revision. An earlier expiry, and tokens that are expired,
    revoked or without an expiry, are not changed.
    """
    now_ms = lab.write(lambda tx: tx.now_ms)
    live, ended, endless = (
        lab.write(lambda tx, at=at: make(tx, expires_at=at)) for at in (now_ms + 60_000, now_ms - 1, None)
    )
    before = lab.clock(0)

    assert lab.write(lambda tx: tx.tokens.extend(live, expires_at=now_ms + 90_000)) is True
    assert lab.write(lambda tx: tx.tokens.extend(live, expires_at=now_ms + 80_000)) is False
    assert lab.write(lambda tx: tx.tokens.extend(ended, expires_at=now_ms + 90_000)) is False
    assert lab.write(lambda tx: tx.tokens.extend(endless, expires_at=now_ms + 90_000)) is False

    assert [lab.load(token_read(each)).expires_at for each in (live, ended)] == [now_ms + 90_000, now_ms - 1]
    assert lab.clock(0) == (before[0] + 1, before[1])


def test_token_of_previous_release_is_believed_and_a_root(lab: StoreLab) -> None:
    """A token row that a node of the previous release wrote counts as `believed` and as the root of its own line."""
    lab.database.sql(
        "INSERT INTO token (id, user_name, name, secret_hash, created_at, revoked) VALUES (7, 'ana', '', ?, 1, false)",
        b"x",
    )

    token = lab.load(token_read(7))

    assert token is not None
    assert (token.trust, token.root_id) == (TokenTrust.BELIEVED, 7)
