# SPDX-License-Identifier: Apache-2.0
"""Azure Storage SAS tokens that give access to one table's directory only.

A token is signed with an account's key, or with a user delegation key of a service principal. Must not know tables or
rights of users. A catalog's properties name the account; without them the environment's principal is used. Its key or
secret is sent only to Azure, and no response contains it. Decision record 0107.
"""

from __future__ import annotations

import json
import re
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from limnos.model.errors import BadRequest, ServiceUnavailable, StorageFailed, UnsupportedOperation
from limnos.model.extras import missing_part
from limnos.model.sealed_secrets import keys_of
from limnos.sources.credentials import FileRights, find_property, unavailable_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from azure.identity import ClientSecretCredential, DefaultAzureCredential
    from azure.storage.filedatalake import UserDelegationKey

VENDED: Final = ("adls.vended-credentials-enabled",)
"""The property that enables vended credentials for tables."""
KEY: Final = ("adls.account-key", "azure-storage-account-key")
TENANT: Final = ("adls.tenant-id", "azure-tenant-id")
CLIENT: Final = ("adls.client-id", "azure-client-id")
SECRET: Final = ("adls.client-secret", "azure-client-secret")
HOST: Final = ("adls.account-host",)
TOKEN: Final = "adls.sas-token"  # noqa: S105 - the name of a property
LIFE_S: Final = 3600
_EARLIER_S: Final = 300
"""The seconds before now at which tokens become valid, because Azure's clock may be behind ours."""
_READS: Final = "rl"
_WRITES: Final = "racwdl"
_TIMEOUT_S: Final = 8
_OWN: Final = (*KEY, *CLIENT, *SECRET)
_PLACE: Final = re.compile(
    r"abfs://([a-z0-9][a-z0-9-]{1,61}[a-z0-9])@(([a-z0-9]{3,24})\.[a-z0-9.-]+)/([^/]+(?:/[^/]+)*)"
)
"""A pattern for a directory in a container of an account.

A token states the directory's depth, so no part of the path may be empty.
"""


class AdlsAccount(NamedTuple):
    """The signer of a token: an account's key or a service principal; and the Blob Storage host, if it is not Azure's
    default.
    """

    key: str | None
    program: tuple[str, str, str] | None
    """The service principal: its tenant, its id and its secret."""
    host: str | None

    @property
    def name(self) -> str:
        """A description of the signer for the log, without secrets: the service principal's client ID, or the kind of
        key.
        """
        if self.program is not None:
            return f"service principal {self.program[1]}"
        return "the environment's service principal" if self.key is None else "an account's key"

    @property
    def endpoint(self) -> str | None:
        """The host of the account's service; None for Azure's default."""
        return self.host

    @property
    def life_s(self) -> int:
        """The lifetime of new SAS tokens in seconds."""
        return LIFE_S

    def __repr__(self) -> str:
        return f"AdlsAccount({self.name})"

    def statement(self) -> str:
        """Return the Azure role assignments that the service principal needs, as JSON (`assignee`, `roles`)."""
        who = "PROGRAM" if self.program is None else self.program[1]
        return json.dumps({"assignee": who, "roles": ["Storage Blob Data Contributor", "Storage Blob Delegator"]})

    def policy_of(self, location: str, *, rights: FileRights) -> str | None:
        """Return the directory and permissions to sign for a location, as JSON.

        Returns None for a location that is not a directory, and for a user who may not read. A token has one directory
        and one set of permissions, so a user who may only write could also read the rows.
        """
        match = _PLACE.fullmatch(location)
        if match is None or not rights.reads:
            return None
        permission = _WRITES if rights.writes else _READS
        return json.dumps(
            {
                "container": match[1],
                "host": match[2],
                "account": match[3],
                "directory": match[4],
                "permission": permission,
            }
        )

    def issue(self, policy: str) -> AdlsSignature:
        """Sign a token for a policy; blocks. Raises as `sign_directory` does."""
        return sign_directory(self, json.loads(policy))


class AdlsSignature(NamedTuple):
    """A SAS token for one directory, the storage account's host, and the token's expiry in milliseconds since 1970."""

    token: str
    host: str
    expires_ms: int

    def __repr__(self) -> str:
        return f"AdlsSignature(expires_ms={self.expires_ms})"

    def client_properties(self, properties: Mapping[str, str]) -> dict[str, str]:
        """Return a catalog's client properties with this token in place of the account key."""
        return {**{name: value for name, value in properties.items() if name not in _OWN}, TOKEN: self.token}


def account_of(properties: Mapping[str, str]) -> AdlsAccount | None:
    """Return the account that signs for a catalog's tables; None if the catalog vends no credentials.

    Secrets in the properties may still be encrypted. Raises BadRequest for an incomplete account.
    """
    if (find_property(properties, VENDED) or "").lower() != "true":
        return None
    key, host = find_property(properties, KEY), find_property(properties, HOST)
    result = tuple(find_property(properties, names) for names in (TENANT, CLIENT, SECRET))
    program = (result[0], result[1], result[2]) if result[0] and result[1] and result[2] else None
    if program is None and any(result):
        raise BadRequest(f"Properties '{TENANT[0]}', '{CLIENT[0]}' and '{SECRET[0]}' go together: set all, or none")
    if key is None and program is None and host is not None:
        raise BadRequest(
            f"Property '{HOST[0]}' goes with '{KEY[0]}' or '{CLIENT[0]}': the identity of the environment is only sent"
            " to Azure"
        )
    return AdlsAccount(key, program, host)


def check_account(properties: Mapping[str, str]) -> None:
    """Raise BadRequest for invalid account properties of a catalog, even if vending is off."""
    account_of({**properties, VENDED[0]: "true"})
    key = find_property(properties, KEY)
    if key is not None and not keys_of(key) and not re.fullmatch(r"[A-Za-z0-9+/]{20,}={0,2}", key):
        raise BadRequest(f"Property '{KEY[0]}' is not an account key: give the key that Azure shows, in base64")


def sign_directory(account: AdlsAccount, policy: Mapping[str, str]) -> AdlsSignature:
    """Sign a token for one directory. Blocks for a service principal, which first requests a user delegation key.

    Args:
        account: The signer.
        policy: The decoded policy of `AdlsAccount.policy_of`.

    Raises:
        ServiceUnavailable: Azure does not respond.
        StorageFailed: Azure refuses.
        UnsupportedOperation: Azure's libraries are not installed.
    """
    try:
        from azure.core.exceptions import AzureError  # noqa: PLC0415 - of the extra `adls`
        from azure.storage.filedatalake import generate_directory_sas  # noqa: PLC0415 - as above
    except ImportError as error:
        raise UnsupportedOperation(missing_part("Vending signatures for tables needs", ("adls",))) from error
    now_s = int(time.time())
    starts, ends = (datetime.fromtimestamp(at, UTC) for at in (now_s - _EARLIER_S, now_s + LIFE_S))
    try:
        by = (
            account.key
            if account.program is None and account.key
            else _user_delegation_key(account, policy["account"], starts=starts, ends=ends)
        )
        token = generate_directory_sas(
            policy["account"],
            policy["container"],
            policy["directory"],
            by,
            permission=policy["permission"],
            start=starts,
            expiry=ends,
        )
    except (AzureError, ValueError) as error:
        raise _signing_error(error) from error
    return AdlsSignature(token, policy["host"], (now_s + LIFE_S) * 1000)


def _user_delegation_key(account: AdlsAccount, name: str, *, starts: datetime, ends: datetime) -> UserDelegationKey:
    """Request the user delegation key with which a service principal signs."""
    from azure.storage.filedatalake import DataLakeServiceClient  # noqa: PLC0415 - of the extra `adls`

    host = account.host or f"{name}.blob.core.windows.net"
    with (
        _credential_of(account) as program,
        DataLakeServiceClient(
            f"https://{host}", program, connection_timeout=_TIMEOUT_S, read_timeout=_TIMEOUT_S, retry_total=1
        ) as client,
    ):
        return client.get_user_delegation_key(starts, ends)


def _credential_of(account: AdlsAccount) -> ClientSecretCredential | DefaultAzureCredential:
    """Return the credential of the account's service principal, or Azure's default credential of the environment if it
    has none. Sends no request yet.
    """
    from azure.identity import ClientSecretCredential, DefaultAzureCredential  # noqa: PLC0415 - of the extra `adls`

    if account.program is None:
        return DefaultAzureCredential()
    return ClientSecretCredential(
        *account.program, disable_instance_discovery=True, connection_timeout=_TIMEOUT_S, retry_total=1
    )


def _signing_error(error: Exception) -> StorageFailed | ServiceUnavailable:
    """Map an exception of Azure's libraries to an error of `model`. Azure's message is only logged."""
    if any(map(_is_unavailable, _with_causes(error))):
        return unavailable_error(error)
    return StorageFailed(
        f"The catalog's signatures for tables are refused by Azure: its owner checks {CLIENT[0]}, {SECRET[0]}, {KEY[0]}"
        " and their permissions; the server's log has Azure's message",
        cause=str(error),
    )


def _is_unavailable(error: BaseException) -> bool:
    """Return whether an error means that Azure is unavailable: no response, or a 5xx status.

    The sign-in library reports a status only in its message.
    """
    status = getattr(error, "status_code", None)
    names = {base.__name__ for base in type(error).__mro__}
    return (
        bool(names & {"ServiceRequestError", "ServiceResponseError"})
        or (isinstance(status, int) and status >= 500)
        or "HTTP Error: 5" in str(error)
    )


def _with_causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__
