# SPDX-License-Identifier: Apache-2.0
"""Storage checks: tests whether a catalog's storage can write, list, read and delete, and vends credentials for one
location only.

Must not know any wire format. A check uses a temporary directory in the catalog's warehouse, and deletes its files. A
missing right is reported with the policy statement that grants it; the store's own message is only logged. Decision
record 0100.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final, NamedTuple
from uuid import uuid4

from limnos.access.actions import Action
from limnos.files import LOCAL_FILES, is_local, is_refused, parse, store_for
from limnos.model.errors import BadRequest, LimnosError, ServiceUnavailable, StorageFailed
from limnos.model.kinds import ICEBERG_PROVIDER
from limnos.services.request.catalog_storage import PROVIDERS_WITH_WAREHOUSE, CatalogStorage, catalog_storage_of
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.vending.credentials import BOTH, VENDOR, CredentialRequest, credential_request_of
from limnos.sources.vending import SWITCHES

PASSED, FAILED, NOT_TRIED = "passed", "failed", "not tried"
_PROBE: Final = b"limnos storage check"
_NOT_REACHED: Final = "the store was not reached before"
_ACTIONS: Final = {
    "write": ("s3:PutObject",),
    "list": ("s3:ListBucket",),
    "read": ("s3:GetObject",),
    "delete": ("s3:DeleteObject",),
}


class StorageCheckStep(NamedTuple):
    """One step of a check: its outcome, an explanation, and the policy statement that would grant a missing right, if
    any.
    """

    name: str
    outcome: str
    told: str
    statement: str | None = None


class StorageCheck(NamedTuple):
    """The result of a check: its location, and its steps in order."""

    location: str
    steps: tuple[StorageCheckStep, ...]

    @property
    def passed(self) -> bool:
        """Whether no step of the check failed; skipped steps do not count as failed."""
        return all(each.outcome != FAILED for each in self.steps)


async def storage_check(ctx: Context, scope: RequestScope) -> StorageCheck:
    """Check that a catalog's storage supports the operations that tables need.

    Raises BadRequest for a catalog without files, OutsideRoots for a warehouse that is not allowed, NotFound, NotInUse,
    PermissionDenied.
    """

    def look(request_view: RequestView) -> CatalogStorage:
        request_view.require(Action.CATALOG_ALTER, request_view.settled.outer)
        request_view.require_in_use()
        if request_view.catalog_record.provider not in PROVIDERS_WITH_WAREHOUSE:
            raise BadRequest(
                f"Catalog {request_view.catalog.name} has no files of its own to check: choose one of"
                f" {ICEBERG_PROVIDER}, for example"
            )
        return catalog_storage_of(request_view)

    catalog_storage = await ctx.read(scope, look)
    if catalog_storage.home is None:
        catalog_storage.check(catalog_storage.warehouse)
    return await _StorageCheckRun(ctx, catalog_storage, at=f"{catalog_storage.home}/limnos-check-{uuid4().hex}").run()


class _StorageCheckRun:
    """A storage check in progress: its catalog's storage, its directory, and the steps completed so far."""

    def __init__(self, ctx: Context, place: CatalogStorage, *, at: str) -> None:
        self.ctx = ctx
        self.place = place
        self.at = at
        self.own = f"{at}/own/probe"
        # Shares the prefix `own`: finds policies that compare names without a slash.
        self.beside = f"{at}/own-beside/probe"
        self.steps: list[StorageCheckStep] = []
        self.is_over = False

    async def run(self) -> StorageCheck:
        properties = self.place.catalog.properties
        try:
            self._usable(properties)
            await self._try("write", self._write(self.own, properties))
            await self._try("list", self._list(self.own, properties))
            await self._try("read", self._read(self.own, properties))
            await self._vending()
            await self._try("delete", self._delete(self.own, properties))
        finally:
            await self._clean()
        return StorageCheck(self.at, tuple(self.steps))

    def _usable(self, properties: Mapping[str, str]) -> None:
        """Check that the properties describe a usable connection, before any access."""
        if is_local(self.at):
            return
        try:
            self.place.allowed.check_use(properties)
        except LimnosError as error:
            self.is_over = True
            self.steps.append(StorageCheckStep("settings", FAILED, error.message))

    # -- steps -------------------------------------------------------------------------------------------------

    async def _try(
        self, name: str, call: Callable[[], Awaitable[object]], *, by: str = "the catalog's own keys"
    ) -> bool:
        """Run one step and record its outcome. After a timeout of the store, later steps are skipped."""
        if self.is_over:
            self.steps.append(StorageCheckStep(name, NOT_TRIED, _NOT_REACHED))
            return False
        try:
            await call()
        except LimnosError as error:
            self.is_over = isinstance(error, ServiceUnavailable)
            self.steps.append(self._failed_step(name, error, by=by))
            return False
        success_text = "done by the server on its disk" if is_local(self.at) else f"done with {by}"
        self.steps.append(StorageCheckStep(name, PASSED, success_text))
        return True

    def _failed_step(self, name: str, error: LimnosError, *, by: str) -> StorageCheckStep:
        if not _is_refused(error):
            return StorageCheckStep(name, FAILED, error.message)
        if is_local(self.at):
            return StorageCheckStep(
                name, FAILED, f"the server's user may not do this below {self.place.home}: grant it permission"
            )
        actions = _ACTIONS.get(name.rpartition(" ")[2], ())
        return StorageCheckStep(
            name,
            FAILED,
            f"refused with {by}: add the statement to their policy",
            statement_of(self.place.home or "", actions),
        )

    async def _vending(self) -> None:
        """Test vended credentials: they must give access to their own location, and not to a sibling location."""
        name = "vend"
        request = None if self.is_over else credential_request_of(self.place, self.own.rpartition("/")[0], rights=BOTH)
        if request is None:
            text = (
                "local files need no credentials"
                if is_local(self.at)
                else (_NOT_REACHED if self.is_over else self._not_vended_reason())
            )
            self.steps.append(StorageCheckStep(name, NOT_TRIED, text))
            return
        if not await self._vend(request):
            return
        result = await VENDOR.of(self.ctx.services).issue_credentials(request)  # cached by the step before
        properties = result.client_properties(self.place.catalog.properties)
        by = "credentials for one location"
        await self._try("vended write", self._write(f"{self.own}-vended", properties), by=by)
        await self._try("vended list", self._list(f"{self.own}-vended", properties), by=by)
        await self._try("vended read", self._read(f"{self.own}-vended", properties), by=by)
        await self._try("vended delete", self._delete(f"{self.own}-vended", properties), by=by)
        await self._write(self.beside, self.place.catalog.properties)()
        for word, call in (
            ("read", self._read(self.beside, properties)),
            ("list", self._list(self.beside, properties)),
            ("write", self._write(f"{self.beside}-vended", properties)),
            ("delete", self._delete(self.beside, properties)),
        ):
            await self._check_refusal(f"vended {word} beside", call)

    def _not_vended_reason(self) -> str:
        switch = SWITCHES.get(parse(self.at).scheme)
        if switch is None:
            return "credentials are not vended for stores of this kind"
        return f"the catalog does not vend credentials: set '{switch}' to vend them for tables"

    async def _vend(self, request: CredentialRequest) -> bool:
        try:
            await VENDOR.of(self.ctx.services).issue_credentials(request)
        except LimnosError as error:
            self.is_over = self.is_over or isinstance(error, ServiceUnavailable)
            statement = request.issuer.statement() if isinstance(error, StorageFailed) else None
            self.steps.append(StorageCheckStep("vend", FAILED, error.message, statement))
            return False
        self.steps.append(StorageCheckStep("vend", PASSED, "credentials for one location were vended"))
        return True

    async def _check_refusal(self, name: str, call: Callable[[], Awaitable[object]]) -> None:
        """Run one step that must fail: credentials for one location are refused at a sibling location."""
        if self.is_over:
            self.steps.append(StorageCheckStep(name, NOT_TRIED, _NOT_REACHED))
            return
        try:
            await call()
        except LimnosError as error:
            self.is_over = isinstance(error, ServiceUnavailable)
            if _is_refused(error):
                self.steps.append(StorageCheckStep(name, PASSED, "refused, as it must be"))
            else:
                self.steps.append(StorageCheckStep(name, FAILED, error.message))
            return
        self.steps.append(
            StorageCheckStep(
                name,
                FAILED,
                "credentials for one location also open a sibling location: this store does not enforce session"
                " policies, so remove the role",
            )
        )

    # -- operations --------------------------------------------------------------------------------------------

    def _write(self, location: str, properties: Mapping[str, str]) -> Callable[[], Awaitable[object]]:
        return lambda: self.ctx.services.files.write(location, _PROBE, properties, first=True)

    def _list(self, location: str, properties: Mapping[str, str]) -> Callable[[], Awaitable[object]]:
        async def check_listing() -> None:
            directory = location.rpartition("/")[0]
            names = await self.ctx.services.files.below(directory, properties, roots=self.place.roots)
            if location not in names:
                raise StorageFailed(
                    f"The file written at {location} is not listed there: the store has lost it, or lists it late"
                )

        return check_listing

    def _read(self, location: str, properties: Mapping[str, str]) -> Callable[[], Awaitable[object]]:
        async def read() -> None:
            if await self.ctx.services.files.read(location, properties) != _PROBE:
                raise StorageFailed(
                    f"The file read at {location} differs from the written one: the store returns other bytes"
                )

        return read

    def _delete(self, location: str, properties: Mapping[str, str]) -> Callable[[], Awaitable[object]]:
        files = self.ctx.services.files
        return lambda: files.run_in_thread(
            location, properties=properties, call=lambda: store_for(location, properties).delete(location)
        )

    async def _clean(self) -> None:
        """Delete the check's files, if the store allows it."""
        if is_local(self.at):
            with suppress(LimnosError):
                LOCAL_FILES.undo_create(self.own)
            return
        if not self.is_over:
            for location in (self.own, self.beside, f"{self.own}-vended", f"{self.beside}-vended"):
                await self.ctx.services.files.delete(location, self.place.catalog.properties)


def _is_refused(error: LimnosError) -> bool:
    """Return whether the store or the disk refused for lack of rights."""
    return isinstance(error, StorageFailed) and is_refused(error.__cause__)


def statement_of(location: str, actions: tuple[str, ...]) -> str | None:
    """Return the policy statement that allows actions below a location; None for stores without such policies."""
    parsed_location = parse(location)
    if parsed_location.scheme != "s3" or not actions:
        return None
    bucket, prefix = f"arn:aws:s3:::{parsed_location.authority}", "/".join(parsed_location.segments)
    if actions == ("s3:ListBucket",):
        statement: dict[str, object] = {
            "Effect": "Allow",
            "Action": "s3:ListBucket",
            "Resource": bucket,
            "Condition": {"StringLike": {"s3:prefix": f"{prefix}/*"}},
        }
    else:
        statement = {"Effect": "Allow", "Action": list(actions), "Resource": f"{bucket}/{prefix}/*"}
    return json.dumps(statement)
