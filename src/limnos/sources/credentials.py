# SPDX-License-Identifier: Apache-2.0
"""Temporary AWS credentials from STS that give access to one table's location only.

Must not know tables or rights of users: a location and the rights to its files are passed in. A catalog's properties
name the role to assume, under Gravitino's names or Iceberg's. The catalog's own keys are sent only to STS, and no
response contains them. Decision record 0059.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Final, NamedTuple, Protocol, cast

from limnos.model.errors import BadRequest, ServiceUnavailable, StorageFailed, UnsupportedOperation
from limnos.model.extras import missing_part

ROLE: Final = ("s3.role-arn", "s3-role-arn")
"""The property that enables vended credentials for tables."""
EXTERNAL_ID: Final = ("s3.external-id", "s3-external-id")
DURATION: Final = ("s3.token-expire-in-secs", "s3-token-expire-in-secs")
STS_ENDPOINT: Final = ("s3.token-service-endpoint", "s3-token-service-endpoint")
S3_ENDPOINT: Final = ("s3.endpoint", "s3-endpoint")
REGION: Final = ("s3.region", "client.region", "s3-region")
KEY_ID: Final = ("s3.access-key-id", "s3-access-key-id")
SECRET: Final = ("s3.secret-access-key", "s3-secret-access-key")
TOKEN: Final = ("s3.session-token", "s3-session-token")
PATH_STYLE: Final = ("s3.path-style-access", "s3-path-style-access")

DURATION_S: Final = 3600
DURATION_MIN_S, DURATION_MAX_S = 900, 43_200
"""The limits of STS for the lifetime of credentials, in seconds."""
POLICY_CHARACTERS_MAX: Final = 2048
"""The limit of STS for the length of a policy. A location that needs a longer policy gets no credentials."""
_CONNECT_TIMEOUT_S: Final = 3
_READ_TIMEOUT_S: Final = 8
_CLIENTS_MAX: Final = 64
_KEY_NAMES: Final = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
_ARN: Final = re.compile(r"arn:[\x21-\x7e]{16,2000}")
_EXTERNAL_ID: Final = re.compile(r"[\w+=,.@:/-]{2,1224}", re.ASCII)
_PLACE: Final = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,62})/([^*?$]+)")
"""A pattern for a location without wildcards or variables of a policy, which would give access to other locations."""
_AMAZON: Final = re.compile(r"https://[^/]*\.amazonaws\.com(\.cn)?(:443)?/?")


class FileRights(NamedTuple):
    """A user's rights to a table's files, read and write, which vended credentials must not exceed."""

    reads: bool
    writes: bool


class AwsRole(NamedTuple):
    """An IAM role to assume, the access keys for that call (None for the environment's), and the STS endpoint."""

    arn: str
    external_id: str | None
    duration_s: int
    endpoint: str | None
    region: str | None
    keys: tuple[str | None, str | None, str | None]

    @property
    def name(self) -> str:
        """The role's ARN, which identifies it in the log."""
        return self.arn

    @property
    def life_s(self) -> int:
        """The lifetime of new credentials in seconds."""
        return self.duration_s

    def __repr__(self) -> str:
        return f"Role({self.arn})"

    def statement(self) -> str:
        """Return the IAM policy statement that allows assuming the role, as JSON. The role's trust policy must allow
        the same.
        """
        return json.dumps({"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": self.arn})

    def policy_of(self, location: str, *, rights: FileRights) -> str | None:
        """Return the policy that gives access to one location; None without a right to its files, or if no policy can
        name it safely.
        """
        return policy_of(self, location, rights=rights)

    def issue(self, policy: str) -> AwsCredentials:
        """Assume the role, limited by a policy; blocks. Raises as `assume_role` does."""
        return assume_role(self, policy)


class AwsCredentials(NamedTuple):
    """Temporary access keys for one location, and their expiry in milliseconds since 1970."""

    access_key_id: str
    secret_access_key: str
    session_token: str
    expires_ms: int

    def __repr__(self) -> str:
        return f"Credentials(expires_ms={self.expires_ms})"

    def client_properties(self, properties: Mapping[str, str]) -> dict[str, str]:
        """Return a catalog's client properties with these keys in place of the catalog's access keys."""
        own_keys = {*KEY_ID, *SECRET, *TOKEN}
        return {
            **{name: value for name, value in properties.items() if name not in own_keys},
            KEY_ID[0]: self.access_key_id,
            SECRET[0]: self.secret_access_key,
            TOKEN[0]: self.session_token,
        }


class _Sts(Protocol):
    def assume_role(self, **words: object) -> Mapping[str, Mapping[str, object]]: ...


def find_property(properties: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    """Return the value of the first property among `names` that is set; None if none is set."""
    for name in names:  # called a dozen times for each load with credentials: a generator takes twice as long
        if result := properties.get(name):
            return result
    return None


def check_role(properties: Mapping[str, str]) -> None:
    """Raise BadRequest for invalid role properties of a catalog, even if it names no role."""
    some = {} if find_property(properties, ROLE) is not None else {ROLE[0]: "arn:aws:iam::123456789012:role/any"}
    role_of({**properties, **some})


def role_of(properties: Mapping[str, str]) -> AwsRole | None:
    """Return the role that a catalog's properties name; None if they name no role. Raises BadRequest for invalid
    properties.
    """
    arn = find_property(properties, ROLE)
    if arn is None:
        return None
    if not _ARN.fullmatch(arn):
        raise BadRequest(f"Property '{ROLE[1]}' is {arn[:100]!r}: write a role as arn:aws:iam::123456789012:role/NAME")
    external_id = find_property(properties, EXTERNAL_ID)
    if external_id is not None and not _EXTERNAL_ID.fullmatch(external_id):
        raise BadRequest(f"Property '{EXTERNAL_ID[1]}' must have 2 to 1224 letters, digits or signs of _+=,.@:/-")
    keys = find_property(properties, KEY_ID), find_property(properties, SECRET), find_property(properties, TOKEN)
    return AwsRole(
        arn=arn,
        external_id=external_id,
        duration_s=_duration_of(properties),
        endpoint=_endpoint_of(properties),
        region=find_property(properties, REGION),
        keys=keys,
    )


def _duration_of(properties: Mapping[str, str]) -> int:
    text = find_property(properties, DURATION)
    if text is None:
        return DURATION_S
    if not text.isascii() or not text.isdigit() or not DURATION_MIN_S <= int(text[:9]) <= DURATION_MAX_S:
        raise BadRequest(
            f"Property '{DURATION[1]}' is {text[:40]!r}: write seconds from {DURATION_MIN_S} to {DURATION_MAX_S}"
        )
    return int(text)


def _endpoint_of(properties: Mapping[str, str]) -> str | None:
    """Return the STS endpoint. An S3-compatible store serves STS at its own endpoint."""
    endpoint = find_property(properties, S3_ENDPOINT)
    if endpoint is not None and _AMAZON.fullmatch(endpoint):
        endpoint = None
    return find_property(properties, STS_ENDPOINT) or endpoint


def policy_of(role: AwsRole, location: str, *, rights: FileRights) -> str | None:
    """Return the policy that gives access to one location; None without a right to its files, or if no policy can name
    it safely.

    Each pattern for files ends in `/*`, so that other locations with the same prefix stay inaccessible.

    Args:
        role: The role, whose ARN contains the AWS partition.
        location: The directory.
        rights: The rights of the user.
    """
    match = _PLACE.fullmatch(location)
    if match is None or not (rights.reads or rights.writes) or match[2].endswith("/"):
        return None
    partition = role.arn.split(":")[1]
    bucket = f"arn:{partition if partition.startswith('aws') else 'aws'}:s3:::{match[1]}"
    files = f"{bucket}/{match[2]}"
    statements: list[dict[str, object]] = [
        {"Effect": "Allow", "Action": "s3:GetBucketLocation", "Resource": bucket},
        {
            "Effect": "Allow",
            "Action": "s3:ListBucket",
            "Resource": bucket,
            "Condition": {"StringLike": {"s3:prefix": f"{match[2]}/*"}},
        },
    ]
    if rights.reads:
        statements.append({"Effect": "Allow", "Action": "s3:GetObject", "Resource": f"{files}/*"})
    if rights.writes:
        actions = ["s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"]
        statements.append({"Effect": "Allow", "Action": actions, "Resource": f"{files}/*"})
    policy = json.dumps({"Version": "2012-10-17", "Statement": statements}, separators=(",", ":"))
    return policy if len(policy) <= POLICY_CHARACTERS_MAX else None


def assume_role(role: AwsRole, policy: str) -> AwsCredentials:
    """Assume a role by STS AssumeRole with `policy` as session policy; blocks.

    Raises ServiceUnavailable if STS does not respond, StorageFailed if it refuses, UnsupportedOperation if botocore is
    not installed.
    """
    client = _client(role)
    words: dict[str, object] = {"RoleArn": role.arn, "RoleSessionName": "limnos", "Policy": policy}
    if role.external_id is not None:
        words["ExternalId"] = role.external_id
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - of the extra `s3`

    try:
        credentials = client.assume_role(**words, DurationSeconds=role.duration_s)["Credentials"]
    except ClientError as error:
        raise _sts_refused_error(error.response.get("Error", {}).get("Code", ""), error) from error
    except BotoCoreError as error:
        raise _sts_error(error) from error
    expires = cast("datetime", credentials["Expiration"])
    return AwsCredentials(
        str(credentials["AccessKeyId"]),
        str(credentials["SecretAccessKey"]),
        str(credentials["SessionToken"]),
        int(expires.timestamp() * 1000),
    )


@lru_cache(maxsize=_CLIENTS_MAX)
def _client(role: AwsRole) -> _Sts:
    """Return the thread-safe STS client for a role. Raises UnsupportedOperation if botocore is not installed."""
    try:
        from botocore.config import Config  # noqa: PLC0415 - of the extra `s3`
        from botocore.exceptions import BotoCoreError  # noqa: PLC0415 - as above
        from botocore.session import Session  # noqa: PLC0415 - as above
    except ImportError as error:
        raise UnsupportedOperation(missing_part("Vending credentials for tables needs", ("s3",))) from error
    config = Config(
        connect_timeout=_CONNECT_TIMEOUT_S,
        read_timeout=_READ_TIMEOUT_S,
        retries={"mode": "standard", "total_max_attempts": 2},
    )
    region = role.region or ("us-east-1" if role.endpoint is not None else None)
    try:
        client = Session().create_client(
            "sts",
            region_name=region,
            endpoint_url=role.endpoint,
            config=config,
            **dict(zip(_KEY_NAMES, role.keys, strict=True)),
        )
    except (BotoCoreError, ValueError) as error:
        raise _sts_error(error) from error
    return cast("_Sts", client)


def _sts_refused_error(code: str, error: Exception) -> StorageFailed | ServiceUnavailable:
    """Map a refusal of STS to an error. Its message is only logged, because it names accounts."""
    if code in ("Throttling", "RequestLimitExceeded", "ServiceUnavailable", "InternalFailure", "InternalError", "503"):
        return unavailable_error(error)
    return StorageFailed(
        f"The catalog's credentials for tables are refused by its token service ({code or 'without a reason'}): its"
        f" owner checks {ROLE[1]}, {EXTERNAL_ID[1]}, {DURATION[1]} and the keys that assume the role; the server's log"
        " has the service's message",
        cause=str(error),
    )


def _sts_error(error: Exception) -> StorageFailed | ServiceUnavailable:
    names = {base.__name__ for base in type(error).__mro__}
    if names & {"HTTPClientError", "ConnectionError", "ReadTimeoutError", "ConnectTimeoutError"}:
        return unavailable_error(error)
    return StorageFailed(
        "The catalog's token service can't be asked for credentials for tables: its owner checks s3.region, the keys"
        f" and {STS_ENDPOINT[1]}; the server's log has more",
        cause=str(error),
    )


def unavailable_error(error: Exception) -> ServiceUnavailable:
    """Return the error for a token service that does not respond. The cause is only logged."""
    return ServiceUnavailable(
        "The catalog's token service does not answer, so there are no credentials for its tables now: try again, or"
        " request the table without credentials",
        retry_after_s=5,
        cause=str(error),
    )
