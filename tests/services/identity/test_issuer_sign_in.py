# SPDX-License-Identifier: Apache-2.0
"""Sign-in by a token of an external issuer: users are created, memberships follow the newest token, and nobody gets
additional rights.
"""

from __future__ import annotations

import pytest

from limnos.access.authentication import Authenticator, Credential
from limnos.model.errors import AuthenticationFailed, PermissionDenied
from limnos.model.kinds import Kind
from limnos.model.principals import IssuerIdentity, TokenTrust
from limnos.services.catalog.metalakes import metalake_alter, metalake_create
from limnos.services.identity.groups import members_add
from limnos.services.identity.issuer import ISSUER
from limnos.services.identity.issuer_sign_in import sign_in
from limnos.services.identity.tokens import token_create
from limnos.services.identity.users import principal_add, principal_remove, principals_list, user_enable
from limnos.services.request.property_edits import PropertyEdits
from limnos.services.request.request_scope import RequestScope
from tests.inprocess import LAKE
from tests.services.conftest import ServiceDesk

FAR_MS = 1 << 42


class FakeIssuer:
    """A fake issuer whose tokens have the form `user/issued_ms/groups`."""

    metalakes = (LAKE, "nowhere")
    remember_s = 60.0

    def __init__(self) -> None:
        self.checked = 0

    async def identity(self, text: str) -> IssuerIdentity:
        """Parse a token."""
        self.checked += 1
        user, issued, group_text = text.encode("latin-1").decode("unicode_escape").split("/")
        groups = None if group_text == "-" else tuple(sorted(filter(None, group_text.split("+"))))
        return IssuerIdentity(user=user.removesuffix(".."), issued_ms=int(issued), expires_ms=FAR_MS, groups=groups)


@pytest.fixture
def vouched(desk: ServiceDesk) -> ServiceDesk:
    """A desk with the groups `crew` and `guests`, and an issuer."""
    for group in ("crew", "guests"):
        desk.run(principal_add(desk.ctx(), metalake=LAKE, kind=Kind.GROUP, name=group))
    desk.node.services.authenticator = Authenticator(believes_basic=True, has_issuer=True)
    ISSUER.put(desk.node.services, FakeIssuer())
    return desk


def enter(desk: ServiceDesk, user: str, issued_ms: int, groups: str) -> Credential:
    """Sign in."""
    return desk.run(sign_in(desk.node.services, f"Bearer {user}../{issued_ms}/{groups}".encode(), request_id="r"))


def groups_of(desk: ServiceDesk, user: str) -> tuple[str, ...]:
    """Return the groups of a user that decisions use."""
    return desk.run(desk.ctx().read(RequestScope(LAKE), lambda request_view: request_view.subject_of(user))).group_names


def test_first_sign_in_creates_the_user(vouched: ServiceDesk) -> None:
    """The first sign-in adds the user to the metalakes of the settings, with the token's groups that exist there."""
    credential = enter(vouched, "cleo", 10, "crew+unknown")

    assert credential == Credential(user="cleo", expires_ms=FAR_MS)
    assert groups_of(vouched, "cleo") == ("crew",)
    assert vouched.run(
        vouched.node.ctx(credential).read(RequestScope(LAKE), lambda request_view: request_view.subject.member)
    )


def test_sign_in_follows_a_renamed_metalake(vouched: ServiceDesk) -> None:
    """A metalake of the settings that was renamed still gets the issuer's users, and another metalake that takes its
    name gets none.
    """
    vouched.run(metalake_alter(vouched.ctx(), name=LAKE, edits=PropertyEdits(name="former")))
    vouched.run(metalake_create(vouched.ctx(), name=LAKE, comment=None, properties={}))

    enter(vouched, "cleo", 10, "crew")

    users = [
        {
            each.name
            for each in vouched.run(
                vouched.ctx().read(RequestScope(name), lambda view: principals_list(view, Kind.USER))
            )
        }
        for name in ("former", LAKE)
    ]
    assert ["cleo" in each for each in users] == [True, False]


def test_memberships_follow_the_newest_token(vouched: ServiceDesk) -> None:
    """A newer token changes memberships immediately. An older token that arrives later changes nothing."""
    enter(vouched, "ana", 20, "crew")
    enter(vouched, "ana", 30, "guests")
    assert groups_of(vouched, "ana") == ("guests",)

    enter(vouched, "ana", 25, "crew+guests")
    assert groups_of(vouched, "ana") == ("guests",)
    enter(vouched, "ana", 40, "")
    assert groups_of(vouched, "ana") == ()


def test_tokens_do_not_end_memberships_made_by_administrators(vouched: ServiceDesk) -> None:
    """Memberships that administrators made are never ended by a token, even if earlier tokens named the same groups."""
    vouched.run(members_add(vouched.ctx(), metalake=LAKE, group="crew", users=("ana",)))

    enter(vouched, "ana", 10, "crew+guests")
    assert groups_of(vouched, "ana") == ("crew", "guests")
    enter(vouched, "ana", 20, "")
    assert groups_of(vouched, "ana") == ("crew",)


def test_token_without_groups_claim_changes_no_membership(vouched: ServiceDesk) -> None:
    """Without a groups claim users are added, and memberships are unchanged."""
    enter(vouched, "ana", 10, "crew")
    enter(vouched, "ana", 20, "-")

    assert groups_of(vouched, "ana") == ("crew",)
    assert groups_of(vouched, "ben") == ()
    enter(vouched, "dora", 10, "-")
    assert vouched.rows("SELECT count(*) FROM principal WHERE name = 'dora'") == [(1,)]


def test_verified_token_is_cached_by_its_bytes(vouched: ServiceDesk) -> None:
    """A verified token is cached by its bytes. A token with other bytes is verified."""
    issuer = ISSUER.of(vouched.node.services)
    assert isinstance(issuer, FakeIssuer)
    enter(vouched, "ana", 10, "crew")
    enter(vouched, "ana", 10, "crew")
    assert issuer.checked == 1

    assert vouched.node.services.authenticator.credential(b"Bearer ana../11/crew") is None
    enter(vouched, "ana", 11, "crew")
    assert issuer.checked == 2


def test_newer_token_with_same_groups_keeps_access_revision(vouched: ServiceDesk) -> None:
    """A newer token with the same groups moves no access revision."""
    enter(vouched, "ana", 10, "crew")
    before = vouched.rows("SELECT zone, access_revision FROM clock ORDER BY zone")

    enter(vouched, "ana", 20, "crew")

    assert vouched.rows("SELECT zone, access_revision FROM clock ORDER BY zone") == before


def test_new_token_does_not_enable_disabled_user(vouched: ServiceDesk) -> None:
    """A disabled user is refused at the next request, and a new token neither enables nor changes the user."""
    credential = enter(vouched, "ana", 10, "crew")
    vouched.run(user_enable(vouched.ctx(), metalake=LAKE, name="ana", enabled=False))

    for who in (credential, enter(vouched, "ana", 20, "guests")):
        with pytest.raises(PermissionDenied, match="disabled"):
            vouched.run(vouched.node.ctx(who).read(RequestScope(LAKE), lambda request_view: request_view.user))
    assert groups_of(vouched, "ana") == ("crew",)


def test_removed_user_signs_in_again_without_former_roles(vouched: ServiceDesk) -> None:
    """A removed user who signs in again is a new user with the token's groups, without the former roles."""
    enter(vouched, "ana", 10, "crew")
    vouched.run(principal_remove(vouched.ctx(), metalake=LAKE, kind=Kind.USER, name="ana"))

    enter(vouched, "ana", 20, "guests")

    assert groups_of(vouched, "ana") == ("guests",)


def test_api_token_of_signed_in_user_is_fully_trusted(vouched: ServiceDesk) -> None:
    """An API token that such a user creates is fully trusted. A token that an unauthenticated user name creates
    is not.
    """
    credential = enter(vouched, "ana", 10, "-")

    proven, _ = vouched.run(token_create(vouched.node.ctx(credential), user=None, name="t", expires_in_s=None))
    believed, _ = vouched.run(token_create(vouched.ctx("ana"), user=None, name="t", expires_in_s=None))

    assert (proven.trust, believed.trust) == (TokenTrust.PROVEN, TokenTrust.BELIEVED)


def test_cached_token_is_refused_after_expiry(vouched: ServiceDesk) -> None:
    """A cached token is refused after it expires."""
    late = Credential(user="ana", expires_ms=1)

    with pytest.raises(AuthenticationFailed, match="has expired"):
        vouched.run(vouched.node.ctx(late).read(RequestScope(LAKE), lambda request_view: request_view.user))
