"""Tokens of Google Cloud Storage that open one table's place and nothing else: an account's token, narrowed by an access boundary.

May import `model`, this room's words, and google-auth where it is called. Knows no tables and nobody's rights. A catalog's properties say whose account it is (the
environment's without); what proves that goes to the token service alone, and is in no answer. Decision record 0105.
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
"""The property that has tables' tokens given out at all."""
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
"""A place whose name means itself between the quotes of a condition."""


class GcsAccount(NamedTuple):
    """Whose token is narrowed, and where both are asked for."""

    key: str | None
    endpoint: str | None

    @property
    def name(self) -> str:
        """What the log calls it."""
        return self.email or "the environment's account"

    @property
    def email(self) -> str | None:
        """The account's name, if its key was told."""
        return None if self.key is None else str(json.loads(self.key)["client_email"])

    @property
    def life_s(self) -> int:
        """How long a token lasts that is asked for now."""
        return LIFE_S

    def __repr__(self) -> str:
        return f"GcsAccount({self.name})"

    def statement(self) -> str:
        """Spell what the account must be allowed."""
        return json.dumps(
            {"role": "roles/storage.objectUser", "members": [f"serviceAccount:{self.email or 'ACCOUNT'}"]}
        )

    def policy_of(self, location: str, *, rights: FileRights, open_to_writers: tuple[str, ...]) -> str | None:
        """Return the boundary that opens one place; None for a place that no condition can name safely."""
        return boundary_of(location, rights=rights, open_to_writers=open_to_writers)

    def ask(self, policy: str) -> GcsToken:
        """Ask for a token within a boundary; blocks. Raises Unavailable, StorageFailed, Unsupported."""
        return narrow_token(self, policy)


class GcsToken(NamedTuple):
    """A token for one place, and when it ends, in milliseconds since 1970."""

    token: str
    expires_ms: int

    def __repr__(self) -> str:
        return f"GcsToken(expires_ms={self.expires_ms})"

    def given_as(self, properties: Mapping[str, str]) -> dict[str, str]:
        """Return the properties by which a store is reached with this in place of the catalog's own key."""
        return {**{name: value for name, value in properties.items() if name not in KEY}, TOKEN: self.token}


def account_of(properties: Mapping[str, str]) -> GcsAccount | None:
    """Return the account whose tokens a catalog gives out, narrowed; None where it gives out none. Its key may be sealed still."""
    if (find_property(properties, VENDED) or "").lower() != "true":
        return None
    key, endpoint = find_property(properties, KEY), find_property(properties, TOKEN_SERVICE)
    if key is None and endpoint is not None:
        raise BadRequest(
            f"Property '{TOKEN_SERVICE[0]}' goes with '{KEY[0]}': the environment's account is told to Google alone"
        )
    return GcsAccount(key, endpoint)


def check_account(properties: Mapping[str, str]) -> None:
    """Refuse what can be no part of an account, whatever else is set. Raises BadRequest."""
    account_of({**properties, VENDED[0]: "true"})
    key = find_property(properties, KEY)
    if key is not None and not keys_of(key):  # what is sealed was looked at before
        _check_key(key)


def _check_key(key: str) -> None:
    try:
        told = json.loads(key)
    except ValueError:
        told = None
    if not isinstance(told, dict) or not all(
        isinstance(told.get(each), str) for each in ("client_email", "private_key")
    ):
        raise BadRequest(
            f"Property '{KEY[0]}' is no key of a service account: give the JSON that Google made, with client_email and private_key"
        )


def boundary_of(location: str, *, rights: FileRights, open_to_writers: tuple[str, ...]) -> str | None:
    """Return the access boundary that opens one place to who has these rights; None for a place that no condition can name safely.

    Each condition ends in a slash, so that no place whose name only begins alike is opened, nor listed. Names are listed by a role that also reads, under a
    condition that only a list can meet.
    """
    found = _PLACE.fullmatch(location)
    if found is None or not (rights.reads or rights.writes) or found[2].endswith("/"):
        return None
    bucket, place = found[1], found[2]
    files = f"resource.name.startsWith('projects/_/buckets/{bucket}/objects/{place}/"
    lists = f"api.getAttribute('storage.googleapis.com/objectListPrefix', '').startsWith('{place}/')"
    readable = [f"{files}')"] if rights.reads else [f"{files}{name}/')" for name in open_to_writers if "*" not in name]
    rules = [("inRole:roles/storage.objectViewer", lists)]
    if readable:
        rules.append(("inRole:roles/storage.legacyObjectReader", " || ".join(readable)))
    if rights.writes:
        rules.append(("inRole:roles/storage.legacyBucketWriter", f"{files}')"))
    told = [
        {
            "availableResource": f"//storage.googleapis.com/projects/_/buckets/{bucket}", "availablePermissions": [role],
            "availabilityCondition": {"expression": expression},
        }
        for role, expression in rules
    ]  # fmt: skip
    return json.dumps({"accessBoundary": {"accessBoundaryRules": told}}, separators=(",", ":"))


def narrow_token(account: GcsAccount, policy: str) -> GcsToken:
    """Exchange an account's token for one within a boundary; blocks. Raises Unavailable, StorageFailed, Unsupported (google-auth is missing)."""
    try:
        from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415 - of the extra `gcs`
        from google.auth.transport.requests import Request  # noqa: PLC0415 - as above
        from google.oauth2 import sts  # noqa: PLC0415 - as above
    except ImportError as error:
        raise UnsupportedOperation(missing_part("To give out tokens for tables needs", ("gcs",))) from error
    request = partial(Request(), timeout=_TIMEOUT_S)
    exchange = _EXCHANGE if account.endpoint is None else f"{account.endpoint.rstrip('/')}/v1/token"
    try:
        source = _source_of(account)
        source.refresh(request)  # type: ignore[no-untyped-call]  # google-auth has no types
        asked = datetime.now(UTC)
        found = sts.Client(exchange).exchange_token(  # type: ignore[no-untyped-call]  # as above
            request, grant_type=_GRANT, subject_token=source.token, subject_token_type=_ACCESS_TOKEN,
            requested_token_type=_ACCESS_TOKEN, additional_options=json.loads(policy),
        )  # fmt: skip
    except (GoogleAuthError, ValueError) as error:
        raise _token_error(error) from error
    return GcsToken(str(found["access_token"]), _end_of(found, source, asked=asked))


def _source_of(account: GcsAccount) -> GoogleCredentials:
    """Return the account's own credentials; nothing is asked yet. A key's own word of where tokens are made is not followed: it is whoever made the catalog's."""
    if account.key is None:
        import google.auth  # noqa: PLC0415 - of the extra `gcs`

        return google.auth.default(scopes=[_SCOPE])[0]
    from google.oauth2.service_account import Credentials  # noqa: PLC0415 - of the extra `gcs`

    told = json.loads(account.key)
    tokens = _TOKENS if account.endpoint is None else f"{account.endpoint.rstrip('/')}/token"
    info = {"client_email": told["client_email"], "private_key": told["private_key"], "token_uri": tokens}
    found: GoogleCredentials = Credentials.from_service_account_info(info, scopes=[_SCOPE])  # type: ignore[no-untyped-call]  # as above
    return found


def _end_of(found: Mapping[str, object], source: GoogleCredentials, *, asked: datetime) -> int:
    """Return when a token ends: as the service says, else with the one that it was made of."""
    seconds = found.get("expires_in")
    if isinstance(seconds, (int, float)):
        end = asked + timedelta(seconds=seconds)
    else:
        end = asked if source.expiry is None else source.expiry.replace(tzinfo=UTC)
    return int(end.timestamp() * 1000)


def _token_error(error: Exception) -> StorageFailed | ServiceUnavailable:
    """Tell who asked that there are no tokens; what the service said is for the log."""
    from google.auth.exceptions import TransportError  # noqa: PLC0415 - of the extra `gcs`

    if isinstance(error, TransportError) or getattr(error, "retryable", False):
        return unavailable_error(error)
    return StorageFailed(
        f"The catalog's tokens for tables are refused by its token service: its owner checks {KEY[0]} and what its account may do; the server's log has "
        "the service's words",
        cause=str(error),
    )
