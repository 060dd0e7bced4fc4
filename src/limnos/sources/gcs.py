# SPDX-License-Identifier: Apache-2.0
"""Google Cloud Storage tokens that give access to one table's location only.

A token is an account's token, downscoped by a Credential Access Boundary. Must not know tables or rights of users. A
catalog's properties name the account; without them the environment's account (Application Default Credentials) is used.
Its key is sent only to the token service, and no response contains it. Decision record 0105.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from limnos.model.errors import BadRequest, ServiceUnavailable, StorageFailed, UnsupportedOperation
from limnos.model.extras import missing_part
from limnos.model.sealed_secrets import keys_of
from limnos.sources.credentials import FileRights, find_property, unavailable_error

if TYPE_CHECKING:
    from collections.abc import Mapping

    from google.auth.credentials import Credentials as GoogleCredentials

VENDED: Final = ("gcs.vended-credentials-enabled",)
"""The property that enables vended credentials for tables."""
KEY: Final = ("gcs.service-account-key",)
TOKEN_SERVICE: Final = ("gcs.token-service-endpoint",)
PROJECT: Final = ("gcs.project-id",)
HOST: Final = ("gcs.service.host",)
TOKEN: Final = "gcs.oauth2.token"  # noqa: S105 - the name of a property
LIFE_S: Final = 3600
_EXCHANGE: Final = "https://sts.googleapis.com/v1/token"
_TOKENS: Final = "https://oauth2.googleapis.com/token"
_ACCESS_TOKEN: Final = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105 - the name of a type
_GRANT: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
_SCOPE: Final = "https://www.googleapis.com/auth/devstorage.read_write"
_TIMEOUT_S: Final = 8
_PLACE: Final = re.compile(r"gs://([a-z0-9][a-z0-9._-]{1,221})/([^'\\\x00-\x1f]+)")
"""A pattern for a location without characters that have a meaning between the quotes of a condition."""


class GcsAccount(NamedTuple):
    """The service account whose token is downscoped, and the token service's endpoint."""

    key: str | None
    endpoint: str | None

    @property
    def name(self) -> str:
        """The account's email address, or a description of the environment's account, for the log."""
        return self.email or "the environment's account"

    @property
    def email(self) -> str | None:
        """The account's email address; None if the catalog has no key."""
        return None if self.key is None else str(json.loads(self.key)["client_email"])

    @property
    def life_s(self) -> int:
        """The lifetime of new tokens in seconds."""
        return LIFE_S

    def __repr__(self) -> str:
        return f"GcsAccount({self.name})"

    def statement(self) -> str:
        """Return the IAM role that the service account needs on the bucket, as JSON."""
        return json.dumps(
            {"role": "roles/storage.objectUser", "members": [f"serviceAccount:{self.email or 'ACCOUNT'}"]}
        )

    def policy_of(self, location: str, *, rights: FileRights) -> str | None:
        """Return the access boundary for one location; None without a right to its files, or if no condition can name
        it safely.
        """
        return boundary_of(location, rights=rights)

    def issue(self, policy: str) -> GcsToken:
        """Request a downscoped token; blocks. `policy` is the access boundary.

        Raises as `downscope_token` does.
        """
        return downscope_token(self, policy)


class GcsToken(NamedTuple):
    """An access token for one location, and its expiry in milliseconds since 1970."""

    token: str
    expires_ms: int

    def __repr__(self) -> str:
        return f"GcsToken(expires_ms={self.expires_ms})"

    def client_properties(self, properties: Mapping[str, str]) -> dict[str, str]:
        """Return a catalog's client properties with this token in place of the service account's key."""
        return {**{name: value for name, value in properties.items() if name not in KEY}, TOKEN: self.token}


def account_of(properties: Mapping[str, str]) -> GcsAccount | None:
    """Return the service account from which vended tokens are derived; None if the catalog vends no credentials. Its
    key may still be encrypted.

    Raises BadRequest for a token service endpoint without a key.
    """
    if (find_property(properties, VENDED) or "").lower() != "true":
        return None
    key, endpoint = find_property(properties, KEY), find_property(properties, TOKEN_SERVICE)
    if key is None and endpoint is not None:
        raise BadRequest(
            f"Property '{TOKEN_SERVICE[0]}' goes with '{KEY[0]}': the account of the environment is only sent to Google"
        )
    return GcsAccount(key, endpoint)


def check_account(properties: Mapping[str, str]) -> None:
    """Raise BadRequest for invalid account properties of a catalog, even if vending is off."""
    account_of({**properties, VENDED[0]: "true"})
    key = find_property(properties, KEY)
    if key is not None and not keys_of(key):  # a key that is stored encrypted was checked when it was set
        _check_key(key)


def _check_key(key: str) -> None:
    try:
        result = json.loads(key)
    except ValueError:
        result = None
    if not isinstance(result, dict) or not all(
        isinstance(result.get(each), str) for each in ("client_email", "private_key")
    ):
        raise BadRequest(
            f"Property '{KEY[0]}' is not a key of a service account: give the JSON from Google, with client_email and"
            " private_key"
        )


def boundary_of(location: str, *, rights: FileRights) -> str | None:
    """Return the access boundary for one location; None without a right to its files, or if no condition can name it
    safely.

    Each condition for files ends in a slash, so that other locations with the same prefix stay inaccessible. Listing
    needs a role that can also read; its condition is true for list requests only.

    Args:
        location: The directory.
        rights: The rights of the user.
    """
    match = _PLACE.fullmatch(location)
    if match is None or not (rights.reads or rights.writes) or match[2].endswith("/"):
        return None
    bucket, prefix = match[1], match[2]
    files = f"resource.name.startsWith('projects/_/buckets/{bucket}/objects/{prefix}/"
    lists = f"api.getAttribute('storage.googleapis.com/objectListPrefix', '').startsWith('{prefix}/')"
    rules = [("inRole:roles/storage.objectViewer", lists)]
    if rights.reads:
        rules.append(("inRole:roles/storage.legacyObjectReader", f"{files}')"))
    if rights.writes:
        rules.append(("inRole:roles/storage.legacyBucketWriter", f"{files}')"))
    entries = [
        {
            "availableResource": f"//storage.googleapis.com/projects/_/buckets/{bucket}",
            "availablePermissions": [role],
            "availabilityCondition": {"expression": expression},
        }
        for role, expression in rules
    ]
    return json.dumps({"accessBoundary": {"accessBoundaryRules": entries}}, separators=(",", ":"))


def downscope_token(account: GcsAccount, policy: str) -> GcsToken:
    """Exchange an account's token for a downscoped one, within an access boundary; blocks.

    Raises ServiceUnavailable if the token service does not respond, StorageFailed if it refuses, UnsupportedOperation
    if google-auth is not installed.
    """
    try:
        from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415 - of the extra `gcs`
        from google.auth.transport.requests import Request  # noqa: PLC0415 - as above
        from google.oauth2 import sts  # noqa: PLC0415 - as above
    except ImportError as error:
        raise UnsupportedOperation(missing_part("Vending tokens for tables needs", ("gcs",))) from error
    request = partial(Request(), timeout=_TIMEOUT_S)
    exchange = _EXCHANGE if account.endpoint is None else f"{account.endpoint.rstrip('/')}/v1/token"
    try:
        source = _source_of(account)
        source.refresh(request)  # type: ignore[no-untyped-call]  # google-auth has no types
        requested = datetime.now(UTC)
        exchange_token = sts.Client(exchange).exchange_token(  # type: ignore[no-untyped-call]  # as above
            request,
            grant_type=_GRANT,
            subject_token=source.token,
            subject_token_type=_ACCESS_TOKEN,
            requested_token_type=_ACCESS_TOKEN,
            additional_options=json.loads(policy),
        )
    except (GoogleAuthError, ValueError) as error:
        raise _token_error(error) from error
    return GcsToken(str(exchange_token["access_token"]), _end_of(exchange_token, source, requested_end=requested))


def _source_of(account: GcsAccount) -> GoogleCredentials:
    """Return the service account's credentials, not downscoped; sends no request yet.

    The `token_uri` of a service account's key is ignored, because a catalog's creator chose it.
    """
    if account.key is None:
        import google.auth  # noqa: PLC0415 - of the extra `gcs`

        return google.auth.default(scopes=[_SCOPE])[0]
    from google.oauth2.service_account import Credentials  # noqa: PLC0415 - of the extra `gcs`

    result = json.loads(account.key)
    tokens = _TOKENS if account.endpoint is None else f"{account.endpoint.rstrip('/')}/token"
    info = {"client_email": result["client_email"], "private_key": result["private_key"], "token_uri": tokens}
    credentials: GoogleCredentials = Credentials.from_service_account_info(info, scopes=[_SCOPE])  # type: ignore[no-untyped-call]  # as above
    return credentials


def _end_of(fields: Mapping[str, object], source: GoogleCredentials, *, requested_end: datetime) -> int:
    """Return the expiry of a token in milliseconds since 1970: as stated by the service, else that of the account's
    token.
    """
    seconds = fields.get("expires_in")
    if isinstance(seconds, (int, float)):
        end = requested_end + timedelta(seconds=seconds)
    else:
        end = requested_end if source.expiry is None else source.expiry.replace(tzinfo=UTC)
    return int(end.timestamp() * 1000)


def _token_error(error: Exception) -> StorageFailed | ServiceUnavailable:
    """Map an error of the token service to an error of `model`. Its message is only logged."""
    from google.auth.exceptions import TransportError  # noqa: PLC0415 - of the extra `gcs`

    if isinstance(error, TransportError) or getattr(error, "retryable", False):
        return unavailable_error(error)
    return StorageFailed(
        f"The catalog's tokens for tables are refused by its token service: its owner checks {KEY[0]} and its account's"
        " permissions; the server's log has the service's message",
        cause=str(error),
    )
