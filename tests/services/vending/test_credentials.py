# SPDX-License-Identifier: Apache-2.0
"""Cached credentials: all waiting callers share one request to STS. Credentials are renewed at half of their lifetime
and never used after it.
"""

from __future__ import annotations

import asyncio
import threading

import pytest

from limnos.access.actions import Action
from limnos.model.errors import ServiceUnavailable, StorageFailed
from limnos.model.kinds import FILESET_PROVIDER, Kind
from limnos.model.privileges import Privilege
from limnos.services.catalog.filesets import FilesetRequest, fileset_create
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.vending import credentials
from limnos.services.vending.credentials import CredentialRequest, CredentialVendor
from limnos.sources.credentials import AwsCredentials, AwsRole, FileRights
from tests.inprocess import LAKE, add_catalog
from tests.services.conftest import ServiceDesk

HOUR_MS = 3_600_000
ROLE = AwsRole(
    arn="arn:aws:iam::123456789012:role/tables",
    external_id=None,
    duration_s=3600,
    endpoint=None,
    region=None,
    keys=(None, None, None),
)
ONE, TWO = CredentialRequest(ROLE, "one"), CredentialRequest(ROLE, "two")


class Hours:
    """A clock that tests set."""

    at_ms = 0

    def now_ms(self) -> int:
        """Return the time."""
        return self.at_ms


class Sts:
    """A fake STS that records requests, and may fail or wait."""

    def __init__(self, time: Hours) -> None:
        self.time = time
        self.asked: list[str] = []
        self.failure: Exception | None = None
        self.open = threading.Event()
        self.open.set()
        self.began = threading.Event()

    def issue(self, role: AwsRole, policy: str) -> AwsCredentials:
        """Issue credentials for an hour."""
        self.asked.append(policy)
        self.began.set()
        self.open.wait(60)
        if self.failure is not None:
            raise self.failure
        return AwsCredentials(f"{policy}{len(self.asked)}", "s", "t", self.time.at_ms + HOUR_MS)


@pytest.fixture
def time() -> Hours:
    """A clock."""
    return Hours()


@pytest.fixture
def sts(time: Hours) -> Sts:
    """A fake STS."""
    return Sts(time)


def vendor_of(sts: Sts, *, timeout_s: float = 60.0) -> CredentialVendor:
    """Return a vendor of credentials over the fake STS."""
    return CredentialVendor(timeout_s=timeout_s, time=sts.time, issue=sts.issue)  # type: ignore[arg-type]  # the part of a clock that is used


def test_concurrent_callers_share_one_request_per_location(sts: Sts) -> None:
    """Sixty-four concurrent callers share one request per location."""

    async def story() -> set[str]:
        vendor = vendor_of(sts)
        issued_credentials = await asyncio.gather(*(vendor.issue_credentials(each) for each in [ONE, TWO] * 32))
        return {each.access_key_id for each in issued_credentials}

    assert len(asyncio.run(story())) == 2
    assert sorted(sts.asked) == ["one", "two"]


def test_credentials_are_renewed_after_half_their_lifetime(sts: Sts, time: Hours) -> None:
    """Until half of their lifetime has passed the cached credentials are returned, afterwards new ones."""

    async def story() -> list[str]:
        vendor, access_key_ids = vendor_of(sts), []
        for time.at_ms in (0, HOUR_MS // 2 - 1, HOUR_MS // 2 + 1):
            access_key_ids.append((await vendor.issue_credentials(ONE)).access_key_id)
        return access_key_ids

    assert asyncio.run(story()) == ["one1", "one1", "one2"]


def test_cached_credentials_are_returned_while_sts_fails(sts: Sts, time: Hours) -> None:
    """While STS fails, cached credentials are returned until a minute before they expire. A refusal by STS is reported
    immediately.
    """

    async def story() -> None:
        vendor = vendor_of(sts)
        await vendor.issue_credentials(ONE)
        sts.failure = ServiceUnavailable("away", cause="x")
        time.at_ms = HOUR_MS - 70_000
        assert (await vendor.issue_credentials(ONE)).access_key_id == "one1"
        time.at_ms = HOUR_MS - 50_000
        with pytest.raises(ServiceUnavailable, match="away"):
            await vendor.issue_credentials(ONE)
        sts.failure = StorageFailed("refused", cause="x")
        time.at_ms = HOUR_MS - 70_000
        with pytest.raises(StorageFailed, match="refused"):
            await vendor.issue_credentials(ONE)

    asyncio.run(story())


def test_cancelled_caller_does_not_cancel_the_shared_request(sts: Sts) -> None:
    """If the first caller is cancelled, the shared request continues for the others."""

    async def story() -> str:
        vendor = vendor_of(sts)
        sts.open.clear()
        first, second = (asyncio.create_task(vendor.issue_credentials(ONE)) for _ in range(2))
        await asyncio.to_thread(sts.began.wait)
        first.cancel()
        sts.open.set()
        return (await second).access_key_id

    assert asyncio.run(story()) == "one1"


def test_unresponsive_sts_is_503_after_the_timeout(sts: Sts) -> None:
    """If STS does not answer within the storage timeout, the answer is 503 and names the token service. Other requests
    are not blocked.
    """

    async def story() -> None:
        vendor = vendor_of(sts, timeout_s=0.01)
        sts.open.clear()
        with pytest.raises(ServiceUnavailable, match="token service does not answer"):
            await vendor.issue_credentials(ONE)
        sts.open.set()

    asyncio.run(story())


def test_already_expired_credentials_are_refused(sts: Sts, time: Hours) -> None:
    """Credentials that have expired when they are issued are refused, and the error names the clock."""

    async def story() -> None:
        vendor = vendor_of(sts)
        vendor._issue = lambda *_: AwsCredentials("a", "b", "c", 10)
        with pytest.raises(StorageFailed, match="clock"):
            await vendor.issue_credentials(ONE)

    asyncio.run(story())


def test_cache_is_bounded(sts: Sts, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache is bounded and evicts its oldest entries first."""
    monkeypatch.setattr(credentials, "KEPT_MAX", 2)

    async def story() -> list[bool]:
        vendor = vendor_of(sts)
        for policy in ("a", "b", "c"):
            await vendor.issue_credentials(CredentialRequest(ROLE, policy))
        return [vendor.cached_credentials(CredentialRequest(ROLE, policy)) is not None for policy in ("a", "b", "c")]

    assert asyncio.run(story()) == [False, True, True]


def test_fileset_credentials_match_the_callers_rights(desk: ServiceDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials for a fileset allow reading for readers, writing for writers, and both for owners."""
    monkeypatch.setattr(credentials, "is_vending", lambda _: True)
    files = RequestScope(LAKE, "files")
    desk.run(add_catalog(desk.ctx(), "files", provider=FILESET_PROVIDER))
    desk.namespace("s", scope=files)
    request = FilesetRequest(None, False, {}, {})
    desk.run(fileset_create(desk.ctx(), files, path=("s", "f"), request=request))
    for user, privilege in (("ana", Privilege.READ_FILESET), ("bob", Privilege.WRITE_FILESET)):
        desk.allow(user, Kind.CATALOG, "files", Privilege.USE_CATALOG, Privilege.USE_SCHEMA, privilege)

    def opened(user: str) -> FileRights:
        def look(request_view: RequestView) -> FileRights:
            node, chain, _ = request_view.look_up(Kind.FILESET, ("s", "f"), Action.FILESET_LOAD)
            access = credentials._fileset_access(request_view, node, chain=chain, location=None)
            assert access is not None
            return access.rights

        return desk.run(desk.ctx(user).read(files, look))

    assert [opened(user) for user in ("ana", "bob", "admin")] == [
        FileRights(reads=True, writes=False),
        FileRights(reads=False, writes=True),
        FileRights(reads=True, writes=True),
    ]


@pytest.mark.parametrize("jump_ms", [-24 * HOUR_MS, 24 * HOUR_MS], ids=["back", "ahead"])
def test_expired_credentials_are_renewed_after_a_jump_of_the_clock(
    sts: Sts, time: Hours, monkeypatch: pytest.MonkeyPatch, jump_ms: int
) -> None:
    """Credentials are renewed after half of their lifetime as it passes, also if the clock goes back or ahead by a
    day.
    """
    passed_s = [0.0]
    monkeypatch.setattr(credentials, "monotonic", lambda: passed_s[0])

    async def story() -> list[str]:
        vendor = vendor_of(sts)
        access_key_ids = [(await vendor.issue_credentials(ONE)).access_key_id]
        time.at_ms, passed_s[0] = jump_ms, 3_601.0
        access_key_ids.append((await vendor.issue_credentials(ONE)).access_key_id)
        return access_key_ids

    assert asyncio.run(story()) == ["one1", "one2"]
