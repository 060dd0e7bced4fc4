# SPDX-License-Identifier: Apache-2.0
"""Vended credentials: short-lived credentials for one location of a table or fileset, requested from STS and cached.

Decision record 0059.

Must not know any wire format. "STS" stands for the issuer: AWS STS, Google's token service, or the signature of an
Azure SAS token. The caller's rights to read and write determine the request, and are checked again after the response.
The catalog's properties configure the issuer, such as an AWS role to assume; without an issuer no credentials are
vended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from time import monotonic
from typing import Final, NamedTuple, cast

from limnos.access.actions import Action
from limnos.files import ThreadShares, is_within, normalise, parse
from limnos.model.decisions import SecurableChain
from limnos.model.entities import Node
from limnos.model.errors import BadRequest, LimnosError, ServiceUnavailable, StorageFailed
from limnos.model.kinds import Kind
from limnos.model.records import FilesetRecord
from limnos.names.path import Levels
from limnos.services.catalog.filesets import location_name
from limnos.services.federation.placeholder_nodes import read_attached
from limnos.services.lookup.securables import AttachmentTarget, target_require
from limnos.services.request.catalog_storage import CatalogStorage, catalog_storage_of
from limnos.services.request.context import Context
from limnos.services.request.name_codecs import codec_of
from limnos.services.request.node_services import ComponentKey
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import is_sourced
from limnos.services.vending.location_owners import LocationOwner, is_own_location
from limnos.sources.credentials import FileRights
from limnos.sources.vending import SWITCHES, CredentialIssuer, IssuedCredentials, credential_issuer_of
from limnos.store.interface import StoreClock
from limnos.telemetry.logs import get_logger
from limnos.telemetry.metrics import Counter

log = get_logger("limnos.credentials")
KEPT_MAX: Final = 10_000
USABLE_MS: Final = 60_000
"""The minimum remaining lifetime of vended credentials, in milliseconds."""
BOTH: Final = FileRights(reads=True, writes=True)
CREDENTIALS_GIVEN = Counter(
    "limnos_table_credentials_total", "Credentials for tables' files, by outcome.", ("outcome",)
)


class CredentialRequest(NamedTuple):
    """A credential issuer, and the policy that limits it to one location. Equal requests share the same credentials."""

    issuer: CredentialIssuer
    policy: str


class VendedCredentials(NamedTuple):
    """Credentials for the location of a table or fileset, their rights, and the catalog's properties that connect
    clients to the object store.
    """

    credentials: IssuedCredentials
    location: str
    rights: FileRights
    properties: Mapping[str, str]

    @property
    def mark(self) -> str:
        """A short string that differs between credentials with different rights or expiry, for example for an ETag."""
        rights = ("r" if self.rights.reads else "") + ("w" if self.rights.writes else "")
        return f"{rights}{self.credentials.expires_ms}"


class CredentialVendor:
    """Requests credentials from STS, coalesces equal concurrent requests, and caches credentials for half of their
    lifetime.
    """

    def __init__(
        self,
        *,
        timeout_s: float,
        time: StoreClock,
        issue: Callable[[CredentialIssuer, str], IssuedCredentials] = lambda issuer, policy: issuer.issue(policy),
    ) -> None:
        self._shares = ThreadShares(timeout_s=timeout_s)
        self._time = time
        self._issue = issue
        self._kept: dict[CredentialRequest, tuple[IssuedCredentials, float]] = {}
        """Cached credentials, each with the time by the monotonic clock at which it was requested."""
        self._asked: dict[CredentialRequest, asyncio.Task[IssuedCredentials]] = {}
        self._wanted: dict[tuple[str, FileRights], tuple[CatalogStorage, CredentialRequest | None]] = {}

    def request_for(self, opened: TableFileAccess) -> CredentialRequest | None:
        """Return the request to STS for a table's files, cached while the catalog's storage is unchanged.

        Raises as `credential_request_of` does.
        """
        key = (opened.location, opened.rights)
        result = self._wanted.get(key)
        if result is None or result[0] is not opened.place:
            if len(self._wanted) >= KEPT_MAX:
                self._wanted.clear()
            request = credential_request_of(opened.place, opened.location, rights=opened.rights)
            result = self._wanted[key] = (opened.place, request)
        return result[1]

    def cached_credentials(
        self, request: CredentialRequest, *, at_least_ms: int | None = None
    ) -> IssuedCredentials | None:
        """Return cached credentials with at least half of their lifetime left, or with `at_least_ms` milliseconds left;
        else None. Their age counts, too, because the store's clock may have been set back.
        """
        result, requested_at = self._kept.get(request, (None, 0.0))
        life_ms = request.issuer.life_s * 1000
        least = life_ms // 2 if at_least_ms is None else at_least_ms
        if result is None:
            return None
        left_ms = min(result.expires_ms - self._time.now_ms(), life_ms - (monotonic() - requested_at) * 1000)
        return None if left_ms < least else result

    async def issue_credentials(self, request: CredentialRequest) -> IssuedCredentials:
        """Return cached or new credentials.

        If STS does not answer, older cached credentials are returned while they are still valid long enough.

        Raises ServiceUnavailable if STS does not answer, StorageFailed if it refuses, UnsupportedOperation if its
        library is not installed.
        """
        result = self.cached_credentials(request)
        if result is not None:
            CREDENTIALS_GIVEN["kept",] += 1
            return result
        try:
            return await self._new(request)
        except LimnosError as error:
            CREDENTIALS_GIVEN["refused",] += 1
            log.warning("no credentials for a table", role=request.issuer.name, error=error.message, **error.context)
            older = (
                self.cached_credentials(request, at_least_ms=USABLE_MS)
                if isinstance(error, ServiceUnavailable)
                else None
            )
            if older is None:
                raise
            return older

    async def _new(self, request: CredentialRequest) -> IssuedCredentials:
        if asyncio.current_task() is None:
            await asyncio.sleep(0)  # moves a request that runs outside of a task into one
        task = self._asked.get(request)
        if task is None:
            task = self._asked[request] = asyncio.create_task(self._fetch(request))
            task.add_done_callback(partial(self._forget_request, request))
        return await asyncio.shield(task)

    async def _fetch(self, request: CredentialRequest) -> IssuedCredentials:
        issuer, requested_at = request.issuer, monotonic()
        try:
            result = await self._shares.run(
                (issuer.endpoint, issuer.name), partial(self._issue, issuer, request.policy)
            )
        except ServiceUnavailable as error:
            if error.context:
                raise
            raise ServiceUnavailable(  # the threads are stuck, or the call took too long
                "The catalog's token service does not answer, so there are no credentials for its tables now: try"
                " again, or request the table without credentials",
                retry_after_s=5,
            ) from error
        if result.expires_ms - self._time.now_ms() < USABLE_MS:
            raise StorageFailed(
                "The catalog's token service issues credentials that expire at once: have its clock checked"
            )
        self._cache(request, result, requested_at=requested_at)
        CREDENTIALS_GIVEN["new",] += 1
        return result

    def _cache(self, request: CredentialRequest, result: IssuedCredentials, *, requested_at: float) -> None:
        self._kept.pop(request, None)
        if len(self._kept) >= KEPT_MAX:
            now_ms = self._time.now_ms()
            self._kept = {each: entry for each, entry in self._kept.items() if entry[0].expires_ms > now_ms}
            while len(self._kept) >= KEPT_MAX:
                del self._kept[next(iter(self._kept))]
        self._kept[request] = (result, requested_at)

    def _forget_request(self, request: CredentialRequest, task: asyncio.Task[IssuedCredentials]) -> None:
        self._asked.pop(request, None)
        if not task.cancelled():
            task.exception()  # mark it as retrieved: the waiting callers raise it

    def close(self) -> None:
        """Cancel all running requests to STS."""
        for task in tuple(self._asked.values()):
            task.cancel()


class TableFileAccess(NamedTuple):
    """The location of a table or fileset, its catalog's storage, and the caller's rights to its files."""

    location: str
    rights: FileRights
    place: CatalogStorage
    owner: LocationOwner


def is_vending(properties: Mapping[str, str]) -> bool:
    """Return whether a catalog vends credentials at all; False for invalid properties."""
    try:
        return any(credential_issuer_of(properties, scheme) is not None for scheme in SWITCHES)
    except BadRequest:
        return False


async def table_credentials(ctx: Context, scope: RequestScope, *, levels: Levels) -> VendedCredentials | None:
    """Return credentials for a table's files, limited to the caller's rights to read and write; None if none are
    vended, or the table is missing.

    Raises ServiceUnavailable if STS does not answer, StorageFailed if it refuses, PermissionDenied if the table's
    location conflicts with that of another object.
    """

    def look(request_view: RequestView) -> TableFileAccess | None:
        node, chain = request_view.find(levels, Kind.TABLE)
        return None if node is None else _table_access(request_view, node, chain=chain)

    return await _vend(ctx, scope, look=look)


async def object_credentials(ctx: Context, on: AttachmentTarget, *, location: str | None) -> VendedCredentials | None:
    """Return credentials for a table's or fileset's files, by the caller's rights; None for other objects, or if none
    are vended.

    `location` names one of a fileset's locations. Raises NotFound, NotInUse, PermissionDenied, and as
    `table_credentials` does.
    """

    def look(request_view: RequestView) -> TableFileAccess | None:
        request_view.require_in_metalake_use()
        target = target_require(request_view, on.kind, on.full_name, codec_of(request_view), Action.METADATA_LOAD)
        if target.node is None or on.kind not in (Kind.TABLE, Kind.FILESET):
            return None
        opens = _table_access if on.kind is Kind.TABLE else partial(_fileset_access, location=location)
        return opens(request_view, target.node, chain=target.chain)

    opens = await read_attached(
        ctx, on.scope, reader=lambda request_view: look(request_view) is not None, otherwise=lambda *_: False
    )
    return await _vend(ctx, on.scope, look=look) if opens else None


async def _vend(
    ctx: Context, scope: RequestScope, *, look: Callable[[RequestView], TableFileAccess | None]
) -> VendedCredentials | None:
    waited: tuple[CredentialRequest, IssuedCredentials] | None = None
    confirmed: TableFileAccess | None = None
    while True:
        visible_table = await ctx.read(scope, look)
        request = None if visible_table is None else VENDOR.of(ctx.services).request_for(visible_table)
        if visible_table is None or request is None:
            return None
        result = VENDOR.of(ctx.services).cached_credentials(request)
        if result is None and waited is not None and waited[0] == request:
            result = waited[1]
        # The rights may change during each of these calls, so the loop checks them again.
        if result is None:
            waited = (request, await VENDOR.of(ctx.services).issue_credentials(request))
        elif confirmed == visible_table:
            return VendedCredentials(
                result, visible_table.location, visible_table.rights, visible_table.place.catalog.properties
            )
        elif await is_own_location(ctx, visible_table.location, owner=visible_table.owner):
            confirmed = visible_table
        else:
            CREDENTIALS_GIVEN["withheld",] += 1
            return None


def _fileset_access(
    request_view: RequestView, node: Node, *, chain: SecurableChain, location: str | None
) -> TableFileAccess | None:
    """Return a location of a fileset and the caller's rights there; None if no credentials are vended, or it has no
    such location.
    """
    record = cast("FilesetRecord", node.record)
    result = record.locations.get(location_name(record, location))
    if result is None or not is_vending(catalog_storage_of(request_view).catalog.properties):
        return None
    request_view.defaults.location_conflicts.refuse(node.id, what="fileset")
    reads, writes = (
        request_view.decide(action, chain).allowed for action in (Action.FILESET_READ, Action.FILESET_ALTER)
    )
    owner = LocationOwner(node.id, request_view.metalake.id)
    return TableFileAccess(result, FileRights(reads, writes), catalog_storage_of(request_view), owner)


def _table_access(request_view: RequestView, node: Node, *, chain: SecurableChain) -> TableFileAccess | None:
    return table_file_access(request_view, node, chain=chain, gives=is_vending)


def table_file_access(
    request_view: RequestView, node: Node, *, chain: SecurableChain, gives: Callable[[Mapping[str, str]], bool]
) -> TableFileAccess | None:
    """Return a table's location and the caller's rights there; None for an object that is not a table, a table of an
    external system, or if `gives` is false for its catalog's properties.

    Raises PermissionDenied if the location conflicts with that of another object.
    """
    if (
        node.kind is not Kind.TABLE
        or is_sourced(request_view)
        or not gives(catalog_storage_of(request_view).catalog.properties)
    ):
        return None
    request_view.defaults.location_conflicts.refuse(node.id, what="table")
    return TableFileAccess(
        request_view.document(node.id).location,
        _table_rights(request_view, chain),
        catalog_storage_of(request_view),
        LocationOwner(node.id, request_view.metalake.id),
    )


def _table_rights(request_view: RequestView, chain: SecurableChain) -> FileRights:
    """Return the caller's rights to a table's files. A caller who may not read rows may neither read nor write files:
    metadata contains values of rows, and a table's properties choose the directories of its writers (0156).
    """
    reads = request_view.decide(Action.TABLE_READ, chain).allowed
    return FileRights(reads, reads and request_view.decide(request_view.commit_action, chain).allowed)


def credential_request_of(place: CatalogStorage, location: str, *, rights: FileRights) -> CredentialRequest | None:
    """Return the request to STS for a location and a caller's rights there.

    Returns None if the catalog vends no credentials, its storage no longer contains the location, or no policy can
    express the location.
    """
    properties = place.catalog.properties
    issuer = credential_issuer_of(properties, parse(location).scheme)
    if issuer is None or not is_within(location, place.roots):
        return None
    place.allowed.check_use(properties)
    policy = issuer.policy_of(normalise(location), rights=rights)
    return None if policy is None else CredentialRequest(issuer, policy)


async def new_table_credentials(ctx: Context, location: str, *, place: CatalogStorage) -> VendedCredentials | None:
    """Return credentials for the location of a table that the caller is about to create and will own.

    Call it before creating the table, so that no table is created if STS does not answer. Do not give the credentials
    to the client before the location is claimed.

    Args:
        ctx: The request.
        location: The location of the new table.
        place: The catalog's storage.

    Returns:
        The credentials; None if the catalog vends none.

    Raises:
        ServiceUnavailable, StorageFailed: As `table_credentials`.
    """
    request = None if not is_vending(place.catalog.properties) else credential_request_of(place, location, rights=BOTH)
    if request is None:
        return None
    return VendedCredentials(
        await VENDOR.of(ctx.services).issue_credentials(request), normalise(location), BOTH, place.catalog.properties
    )


VENDOR: ComponentKey[CredentialVendor] = ComponentKey(
    "vendor", lambda services: CredentialVendor(timeout_s=20.0, time=services.store.time)
)
