# SPDX-License-Identifier: Apache-2.0
"""API tokens: users manage their own tokens and service admins those of others. Wrong, expired and revoked tokens are
refused.
"""

from __future__ import annotations

import pytest

from limnos.access.authentication import Credential
from limnos.model.entities import Token
from limnos.model.errors import AuthenticationFailed, BadRequest, InUse, NotFound, PermissionDenied
from limnos.model.kinds import Kind
from limnos.model.permits import Permit, upkeep_permit
from limnos.model.principals import TokenPurpose
from limnos.services.activity.audit import audit_read
from limnos.services.activity.audit_exports import audit_export
from limnos.services.catalog.metalakes import metalake_create, metalakes_visible
from limnos.services.identity import tokens
from limnos.services.identity.console_sessions import code_create, user_sign_out
from limnos.services.identity.logins import password_set
from limnos.services.identity.tokens import (
    CredentialOrigin,
    TokenCreate,
    token_create,
    token_insert,
    token_revoke,
    tokens_list,
    tokens_visible,
)
from limnos.services.identity.users import principal_add, principal_remove, user_enable
from limnos.services.request.request_scope import RequestScope
from limnos.store.activity.audit import AuditFilter
from tests.inprocess import LAKE, MAIN
from tests.services.conftest import ServiceDesk

SERVER = RequestScope()


def make(
    desk: ServiceDesk, user: str = "ana", *, of: str | None = None, expires_in_s: int | None = None
) -> tuple[int, bytes]:
    """Create a token. Returns its id and the header that presents it."""
    token, text = desk.run(token_create(desk.ctx(user), user=of, name="laptop", expires_in_s=expires_in_s))
    return token.id, f"Bearer {text}".encode()


def credential(desk: ServiceDesk, header: bytes) -> Credential:
    """Parse a header."""
    return desk.node.services.authenticator.credential(header)


def who(desk: ServiceDesk, header: bytes) -> str:
    """Return the user of a header."""
    asks = credential(desk, header)
    return desk.run(desk.node.ctx(asks).read(RequestScope(), lambda request_view: request_view.user))


def test_token_authenticates_its_user(desk: ServiceDesk) -> None:
    """A token authenticates its user, and the store does not contain its secret."""
    _, header = make(desk)
    secret = header.decode().rsplit("_", 1)[1] if header.count(b"_") == 2 else header.decode().split("_", 2)[2]

    assert who(desk, header) == "ana"
    stored = desk.rows("SELECT * FROM token")
    assert secret not in repr(stored)
    assert all(secret.encode() not in each for row in stored for each in row if isinstance(each, bytes))


def test_expired_token_is_refused_the_moment_it_expires(desk: ServiceDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The expiry of a cached token is checked by the store's clock at each use, without any change in the store."""
    _, header = make(desk, expires_in_s=60)
    clock = desk.node.store.time
    real = clock.now_ms
    assert who(desk, header) == "ana"

    monkeypatch.setattr(clock, "now_ms", lambda: real() + 61_000)

    with pytest.raises(AuthenticationFailed, match="has expired"):
        who(desk, header)


@pytest.mark.parametrize("seconds", [0, -1, 10**12])
def test_past_or_too_late_expiry_is_refused(desk: ServiceDesk, seconds: int) -> None:
    """The expiry of a token must be in the future and within the maximum lifetime; a token may also have no expiry."""
    with pytest.raises(BadRequest, match="A token must expire in 1 to"):
        make(desk, expires_in_s=seconds)


def test_revoked_token_is_refused_at_the_next_request_on_every_node(desk: ServiceDesk) -> None:
    """A token that another node has just accepted is refused by that node after this node has revoked it."""
    other = ServiceDesk(desk.lab)
    token_id, header = make(desk)
    assert who(other, header) == "ana"

    assert desk.run(token_revoke(desk.ctx("ana"), token_id=token_id)) is True

    with pytest.raises(AuthenticationFailed, match="was revoked"):
        who(other, header)
    assert desk.run(token_revoke(desk.ctx("ana"), token_id=token_id)) is False


def test_wrong_secret_of_an_existing_token_is_refused(desk: ServiceDesk) -> None:
    """A token with a valid id and a wrong secret is refused."""
    _, header = make(desk)

    with pytest.raises(AuthenticationFailed, match="not valid"):
        who(desk, header[:-1] + (b"A" if header[-1:] != b"A" else b"B"))


def test_cached_absence_ends_when_token_is_created(desk: ServiceDesk) -> None:
    """The cached absence of a token ends when a token of that id is created."""
    first, _ = make(desk)
    with pytest.raises(AuthenticationFailed):
        who(desk, f"Bearer lim_{first + 1}_guess".encode())

    token_id, header = make(desk)

    assert token_id == first + 1
    assert who(desk, header) == "ana"


@pytest.mark.parametrize(
    "header",
    [
        b"Bearer",
        b"Bearer ",
        b"Bearer lim_",
        b"Bearer lim_1_",
        b"Bearer lim_x_y",
        b"Bearer lim_-1_y",
        b"Bearer \xff\xfe",
        b"Bearer lim_99999999999999999999_y",
        b"Basic",
        b"Basic !!!",
        b"Basic /////w==",
        b"Basic Og==",
        b"Digest x",
        b"lim_1_y",
    ],
)
def test_malformed_credentials_are_refused(desk: ServiceDesk, header: bytes) -> None:
    """A malformed credential is refused, not treated as anonymous."""
    with pytest.raises(AuthenticationFailed):
        credential(desk, header)


@pytest.mark.parametrize("header", [b"", b"Bearer None"])
def test_no_credential_is_anonymous(desk: ServiceDesk, header: bytes) -> None:
    """A request without a header, or with the header that PyIceberg sends without a token, has the user `anonymous`."""
    assert who(desk, header) == "anonymous"


def test_anonymous_has_no_tokens(desk: ServiceDesk) -> None:
    """The user `anonymous` can neither create nor list tokens."""
    with pytest.raises(PermissionDenied, match="authenticate by Basic"):
        make(desk, "anonymous")
    with pytest.raises(PermissionDenied):
        desk.run(
            desk.ctx("anonymous").read(RequestScope(), lambda request_view: tokens_list(request_view, "anonymous"))
        )


def test_only_service_admins_manage_tokens_of_other_users(desk: ServiceDesk) -> None:
    """Users may not create, list or revoke tokens of other users, nor learn which tokens exist; service admins may."""
    token_id, _ = make(desk, "bob")

    for work in (
        lambda: make(desk, "ana", of="bob"),
        lambda: desk.run(desk.ctx("ana").read(RequestScope(), lambda request_view: tokens_list(request_view, "bob"))),
        lambda: desk.run(desk.ctx("ana").read(RequestScope(), lambda request_view: tokens_list(request_view, None))),
        lambda: desk.run(token_revoke(desk.ctx("ana"), token_id=token_id)),
        lambda: desk.run(token_revoke(desk.ctx("ana"), token_id=token_id + 1)),
    ):
        with pytest.raises(PermissionDenied):
            work()
    assert [
        token.id
        for token in desk.run(desk.ctx().read(RequestScope(), lambda request_view: tokens_list(request_view, None)))
    ] == [token_id]
    assert desk.run(token_revoke(desk.ctx(), token_id=token_id)) is True
    with pytest.raises(NotFound, match="does not exist"):
        desk.run(token_revoke(desk.ctx(), token_id=token_id + 1))


# -- trust of tokens ---------------------------------------------------------------------------------------------


def refused(desk: ServiceDesk, header: bytes, scope: RequestScope = SERVER) -> str:
    """Return the message with which a header is refused."""
    with pytest.raises(AuthenticationFailed) as caught:
        desk.run(desk.node.ctx(credential(desk, header)).read(scope, lambda request_view: request_view.user))
    return str(caught.value)


def remake(desk: ServiceDesk, header: bytes, *, of: str | None = None) -> bytes:
    """Create a token by a request that is authenticated with a token."""
    ctx = desk.node.ctx(credential(desk, header))
    return f"Bearer {desk.run(token_create(ctx, user=of, name='next', expires_in_s=None))[1]}".encode()


@pytest.mark.parametrize("who_asks, of", [("ana", None), ("ana", "admin"), ("admin", None), ("admin", "ana")])
def test_token_made_with_access_control_off_is_invalid_when_on(
    desk: ServiceDesk, who_asks: str, of: str | None
) -> None:
    """A token that was created with access control off is valid only while it is off."""
    closed = ServiceDesk(desk.lab)
    opened = ServiceDesk(desk.lab, access=False)
    _, header = make(opened, who_asks, of=of)
    heir = remake(opened, header)

    assert who(opened, header) == who(opened, heir) == (of or who_asks)
    assert "created while access control was off" in refused(closed, header)
    assert "limnos create token" in refused(closed, header)
    assert "created while access control was off" in refused(closed, heir)


def test_token_of_unauthenticated_user_is_refused_in_token_mode(desk: ServiceDesk) -> None:
    """If only tokens are accepted as proof, tokens made by an unauthenticated user name are refused, and so are tokens
    made with those.
    """
    strict = ServiceDesk(desk.lab, believes_basic=False)
    _, header = make(desk, "admin")
    heir, gift = remake(desk, header), remake(desk, header, of="ana")

    assert who(desk, header) == who(desk, heir) == "admin"
    for each in (header, heir, gift):
        assert "was not authenticated" in refused(strict, each)


def test_tokens_made_with_the_admin_token_are_trusted(desk: ServiceDesk) -> None:
    """The server's own admin token, and tokens made with it while access control is on, are trusted everywhere."""
    strict = ServiceDesk(desk.lab, believes_basic=False)
    _, text = desk.run(token_create(strict.ctx(), user=None, name="", expires_in_s=None, by_server=True))
    header = f"Bearer {text}".encode()

    gift = remake(strict, header, of="ana")

    for node in (desk, strict, ServiceDesk(desk.lab, access=False)):
        assert (who(node, header), who(node, gift)) == ("admin", "ana")
    assert who(strict, remake(strict, gift)) == "ana"


# -- users of tokens ---------------------------------------------------------------------------------------------


def replace_user(desk: ServiceDesk, name: str) -> None:
    """Remove a user, and add another one of the same name."""
    desk.run(principal_remove(desk.ctx(), metalake=LAKE, kind=Kind.USER, name=name))
    desk.users(name)


@pytest.mark.parametrize("access", [True, False])
def test_user_added_again_does_not_inherit_tokens(desk: ServiceDesk, access: bool) -> None:
    """After a user is removed and added again, every node immediately refuses the old user's tokens in the metalake."""
    node = ServiceDesk(desk.lab, access=access)
    _, header = make(node)
    heir = remake(node, header)
    assert desk.run(node.node.ctx(credential(node, header)).read(MAIN, lambda request_view: request_view.user)) == "ana"

    replace_user(desk, "ana")

    for each in (header, heir):
        for scope in (RequestScope(LAKE), MAIN, RequestScope(LAKE, "none")):
            assert "an earlier user ana of metalake lake" in refused(node, each, scope)


def test_former_users_token_cannot_act_on_new_user_of_same_name(desk: ServiceDesk) -> None:
    """A token of a former user can neither list, create or revoke tokens of the new user with that name, nor read or
    export the audit.
    """
    _, header = make(desk)
    replace_user(desk, "ana")
    fresh, text = desk.run(token_create(desk.ctx(), user="ana", name="", expires_in_s=None))
    old = desk.node.ctx(credential(desk, header))

    for work in (
        lambda: desk.run(tokens_visible(old, None)),
        lambda: desk.run(token_create(old, user=None, name="", expires_in_s=None)),
        lambda: desk.run(token_revoke(old, token_id=fresh.id)),
        lambda: desk.run(metalakes_visible(old)),
        lambda: desk.run(audit_read(old, None, filters=AuditFilter(after=0), limit=1)),
        lambda: desk.run(audit_export(old, location="file:/out", since=None, until=None)),
    ):
        with pytest.raises(AuthenticationFailed, match="earlier user ana"):
            work()
    new = desk.node.ctx(credential(desk, f"Bearer {text}".encode()))
    assert [each.token.id for each in desk.run(tokens_visible(new, None))][-1] == fresh.id
    assert desk.run(new.read(MAIN, lambda request_view: request_view.user)) == "ana"


def test_token_made_with_a_token_has_the_age_of_the_first(desk: ServiceDesk) -> None:
    """A token that is made with another token counts as made when the first token of the line was. A token that an
    administrator makes counts as new.
    """
    _, header = make(desk)
    desk.run(principal_remove(desk.ctx(), metalake=LAKE, kind=Kind.USER, name="ana"))
    heir = remake(desk, header)
    desk.users("ana")
    _, admins = make(desk, "admin")
    gift = remake(desk, admins, of="ana")

    assert "an earlier user ana" in refused(desk, heir, MAIN)
    assert desk.run(desk.node.ctx(credential(desk, gift)).read(MAIN, lambda request_view: request_view.user)) == "ana"


def test_token_for_unknown_user_is_refused(desk: ServiceDesk) -> None:
    """A token cannot be created for a user who does not exist yet."""
    with pytest.raises(NotFound, match="limnos create user cleo"):
        make(desk, "admin", of="cleo")
    assert desk.run(tokens_visible(desk.ctx(), "cleo")) == ()
    desk.users("cleo")

    _, header = make(desk, "admin", of="cleo")

    assert (
        desk.run(desk.node.ctx(credential(desk, header)).read(MAIN, lambda request_view: request_view.user)) == "cleo"
    )


def test_token_for_user_disabled_everywhere_is_refused(desk: ServiceDesk) -> None:
    """A user who is disabled in every metalake gets no token, neither from an administrator nor by another token. One
    metalake in which the user is enabled suffices.
    """
    desk.run(metalake_create(desk.ctx(), name="pond", comment=None, properties={}))
    desk.run(principal_add(desk.ctx(), metalake="pond", kind=Kind.USER, name="ana"))
    desk.run(user_enable(desk.ctx(), metalake=LAKE, name="ana", enabled=False))
    make(desk, "admin", of="ana")

    desk.run(user_enable(desk.ctx(), metalake="pond", name="ana", enabled=False))

    for maker in ("admin", "ana"):
        with pytest.raises(PermissionDenied, match="disabled"):
            make(desk, maker, of="ana")


def test_removal_from_one_metalake_keeps_tokens_valid_in_others(desk: ServiceDesk) -> None:
    """A token stays valid in the metalakes from which its user was not removed."""
    desk.run(metalake_create(desk.ctx(), name="pond", comment=None, properties={}))
    desk.run(principal_add(desk.ctx(), metalake="pond", kind=Kind.USER, name="ana"))
    _, header = make(desk)

    replace_user(desk, "ana")

    ctx = desk.node.ctx(credential(desk, header))
    assert desk.run(ctx.read(RequestScope("pond"), lambda request_view: request_view.user)) == "ana"


# -- tokens end with what they came from --------------------------------------------------------------------------


def minted(
    desk: ServiceDesk, own: Credential, *, of: str | None = None, expires_in_s: int | None = None
) -> tuple[Token, bytes]:
    """Create a token by a request with a credential. Returns the token and the header that presents it."""
    token, text = desk.run(token_create(desk.node.ctx(own), user=of, name="next", expires_in_s=expires_in_s))
    return token, f"Bearer {text}".encode()


@pytest.mark.parametrize("expires_in_s", [None, 3600, 30])
def test_token_never_outlives_the_token_that_made_it(desk: ServiceDesk, expires_in_s: int | None) -> None:
    """A token expires with the token that created it, or earlier, at any depth."""
    parent, text = desk.run(token_create(desk.ctx("ana"), user=None, name="short", expires_in_s=60))
    child, header = minted(desk, credential(desk, f"Bearer {text}".encode()), expires_in_s=expires_in_s)
    grandchild, _ = minted(desk, credential(desk, header))

    assert child.expires_at == (child.created_at + 30_000 if expires_in_s == 30 else parent.expires_at)
    assert grandchild.expires_at == child.expires_at
    assert parent.expires_at is not None


def test_token_made_with_a_token_of_the_issuer_expires_with_it(desk: ServiceDesk) -> None:
    """A token that is created with a token of the external issuer expires with it, and ends when its user signs out of
    all sessions.
    """
    now_ms = desk.node.store.time.now_ms()
    token, header = minted(desk, Credential(user="ana", expires_ms=now_ms + 60_000, signed_in_ms=now_ms))

    assert token.expires_at == now_ms + 60_000
    assert desk.run(user_sign_out(desk.ctx("ana"), user="ana")) == 1
    assert "was revoked" in refused(desk, header)


def test_revoked_token_ends_its_descendants_on_every_node(desk: ServiceDesk) -> None:
    """The tokens that were created with a token, and those created with them, end with it at the next request on every
    node. Other tokens of the user stay valid.
    """
    other = ServiceDesk(desk.lab)
    parent_id, parent = make(desk)
    _, child = minted(desk, credential(desk, parent))
    _, grandchild = minted(desk, credential(desk, child))
    _, unrelated = make(desk)
    assert [who(other, each) for each in (parent, child, grandchild, unrelated)] == ["ana"] * 4

    desk.run(token_revoke(desk.ctx("ana"), token_id=parent_id))

    for each in (parent, child, grandchild):
        assert "was revoked" in refused(other, each)
    assert who(other, unrelated) == "ana"


def test_token_for_another_user_does_not_end_with_the_admins(desk: ServiceDesk) -> None:
    """A token that a service admin creates for another user stays valid when that of the admin is revoked. It expires
    with an API token of the admin that expires, but not with a sign-in of the admin.
    """
    admin_id, admins = make(desk, "admin")
    gift, header = minted(desk, credential(desk, admins), of="ana")
    _, short = make(desk, "admin", expires_in_s=60)
    bounded, _ = minted(desk, credential(desk, short), of="ana")
    now_ms = desk.node.store.time.now_ms()
    by_sign_in, _ = minted(desk, Credential(user="admin", expires_ms=now_ms + 60_000, signed_in_ms=now_ms), of="ana")

    desk.run(token_revoke(desk.ctx(), token_id=admin_id))

    assert who(desk, header) == "ana"
    assert (gift.expires_at, gift.signed_in_at, by_sign_in.expires_at) == (None, None, None)
    assert bounded.expires_at is not None
    assert bounded.expires_at <= now_ms + 60_000


def test_token_of_the_servers_own_work_creates_no_credentials(desk: ServiceDesk) -> None:
    """A token that the server made for a statement creates neither a token nor a console session, and sets no
    password. It is not among the user's tokens.
    """
    token, text = desk.run(
        token_create(desk.ctx("ana"), user=None, name="statement", expires_in_s=60, purpose=TokenPurpose.WORK)
    )
    ctx = desk.node.ctx(credential(desk, f"Bearer {text}".encode()))

    for work in (
        token_create(ctx, user=None, name="next", expires_in_s=None),
        code_create(ctx),
        password_set(ctx, user="ana", password=None, old=None, address=""),
    ):
        with pytest.raises(PermissionDenied, match="creates no credentials"):
            desk.run(work)
    assert token.id not in [each.token.id for each in desk.run(tokens_visible(desk.ctx("ana"), None))]


@pytest.mark.parametrize("ending", ["revoked", "expired"])
def test_token_that_ends_before_the_commit_creates_nothing(
    desk: ServiceDesk, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    """The transaction that creates a token checks the token that creates it: it may have ended after the decision."""
    parent, _ = desk.run(token_create(desk.ctx("ana"), user=None, name="short", expires_in_s=60))
    command = TokenCreate(
        user="ana",
        name="late",
        secret_hash=b"x",
        expires_in_s=None,
        origin=CredentialOrigin(trust=parent.trust, root_id=parent.id, opened_by=parent.id),
        rules=desk.node.services.rules,
    )
    permit = Permit(command=command, decisions=(), zone=0, stamps=(), actor="ana", actor_id=None, request_id="r")
    if ending == "revoked":
        desk.run(token_revoke(desk.ctx("ana"), token_id=parent.id))
    else:
        clock = desk.node.store.time
        real = clock.now_ms
        monkeypatch.setattr(clock, "now_ms", lambda: real() + 61_000)

    with pytest.raises(AuthenticationFailed, match="has ended"):
        desk.run(desk.node.store.submit(permit, lambda tx: token_insert(tx, permit)))

    assert [each.token.name for each in desk.run(tokens_visible(desk.ctx("ana"), None))] == ["short"]


def test_extended_token_is_accepted_although_its_earlier_expiry_was_cached(
    desk: ServiceDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that has cached a token accepts it beyond its former expiry after another node has extended it."""
    other = ServiceDesk(desk.lab)
    token_id, header = make(desk, expires_in_s=60)
    assert who(other, header) == "ana"
    clock = desk.node.store.time
    real = clock.now_ms
    ends = real() + 120_000

    desk.run(desk.node.store.submit(upkeep_permit("limnos"), lambda tx: tx.tokens.extend(token_id, expires_at=ends)))
    monkeypatch.setattr(clock, "now_ms", lambda: real() + 90_000)

    assert who(other, header) == "ana"
    monkeypatch.setattr(clock, "now_ms", lambda: real() + 121_000)
    assert "has expired" in refused(other, header)


def test_number_of_valid_tokens_is_bounded(desk: ServiceDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user has a limited number of valid API tokens; revoked ones do not count."""
    monkeypatch.setattr(tokens, "TOKENS_MAX", 2)
    first, _ = make(desk)
    make(desk)

    with pytest.raises(InUse, match="has 2 valid tokens"):
        make(desk)

    desk.run(token_revoke(desk.ctx("ana"), token_id=first))
    make(desk)
    make(desk, "bob")
