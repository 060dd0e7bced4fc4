# SPDX-License-Identifier: Apache-2.0
"""Roles, session policies, and requests to STS."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from botocore.exceptions import (  # type: ignore[import-untyped]
    ClientError,
    EndpointConnectionError,
    NoCredentialsError,
)

from limnos.model.errors import BadRequest, LimnosError, ServiceUnavailable, StorageFailed
from limnos.sources import credentials
from limnos.sources.credentials import AwsRole, FileRights, assume_role, check_role, policy_of, role_of

ARN = "arn:aws:iam::123456789012:role/tables"
ROLE = role_of({"s3-role-arn": ARN}) or pytest.fail("no role")
BOTH, READS, WRITES = FileRights(True, True), FileRights(True, False), FileRights(False, True)


def opened(location: str, rights: FileRights = BOTH) -> dict[str, object]:
    """Return the resources that a policy allows, by action; a list prefix stands for its resource."""
    policy = policy_of(ROLE, location, rights=rights)
    assert policy is not None
    resources: dict[str, object] = {}
    for each in json.loads(policy)["Statement"]:
        assert each["Effect"] == "Allow"
        actions = [each["Action"]] if isinstance(each["Action"], str) else each["Action"]
        for action in actions:
            resources[action.removeprefix("s3:")] = (
                each.get("Condition", {}).get("StringLike", {}).get("s3:prefix", each["Resource"])
            )
    return resources


def test_catalog_without_a_role_vends_no_credentials() -> None:
    """Without a role there are no vended credentials, whatever the other properties."""
    assert role_of({"s3.access-key-id": "k", "s3-external-id": "xx", "s3-token-expire-in-secs": "900"}) is None


def test_gravitino_and_iceberg_properties_give_the_same_role() -> None:
    """Gravitino's properties and Iceberg's give the same role; the store's own address is the STS address if it is not
    Amazon's.
    """
    theirs = {
        "s3-role-arn": ARN,
        "s3-external-id": "x1",
        "s3-token-expire-in-secs": "900",
        "s3-region": "eu-west-1",
        "s3-access-key-id": "k",
        "s3-secret-access-key": "s",
        "s3-endpoint": "http://minio:9000",
    }
    ours = {name.replace("s3-", "s3.", 1): value for name, value in theirs.items()}

    assert (
        role_of(ours)
        == role_of(theirs)
        == AwsRole(
            arn=ARN,
            external_id="x1",
            duration_s=900,
            endpoint="http://minio:9000",
            region="eu-west-1",
            keys=("k", "s", None),
        )
    )
    assert (role_of({**ours, "s3.endpoint": "https://s3.eu-west-1.amazonaws.com"}) or ROLE).endpoint is None
    assert (role_of({**ours, "s3-token-service-endpoint": "https://sts.here"}) or ROLE).endpoint == "https://sts.here"
    assert "s" not in repr(role_of(theirs)).removeprefix(f"Role({ARN}")


@pytest.mark.parametrize(
    "properties",
    [
        {"s3-role-arn": "role/tables"},
        {"s3.role-arn": f"{ARN} x"},
        {"s3-token-expire-in-secs": "899"},
        {"s3-token-expire-in-secs": "43201"},
        {"s3-token-expire-in-secs": "-900"},
        {"s3-token-expire-in-secs": "٩٠٠"},
        {"s3-external-id": "a b"},
        {"s3-external-id": "a"},
    ],
)
def test_invalid_role_properties_are_refused(properties: dict[str, str]) -> None:
    """Each invalid property of a role is refused, with or without the others."""
    with pytest.raises(BadRequest, match="Property 's3-"):
        check_role(properties)


def test_policy_excludes_locations_with_the_same_prefix() -> None:
    """Files and lists are below the location followed by a slash, so a location with the same prefix is neither
    readable nor listed.
    """
    place = "arn:aws:s3:::lake/w/t"
    files = f"{place}/*"

    assert opened("s3://lake/w/t") == {
        "GetBucketLocation": "arn:aws:s3:::lake",
        "ListBucket": "w/t/*",
        "GetObject": files,
        "PutObject": files,
        "DeleteObject": files,
        "AbortMultipartUpload": files,
        "ListMultipartUploadParts": files,
    }


def test_policy_is_limited_to_the_callers_rights() -> None:
    """A reader cannot write, and a user who may only write to a directory reads no file."""
    assert set(opened("s3://lake/w/t", READS)) == {"GetBucketLocation", "ListBucket", "GetObject"}
    assert "GetObject" not in opened("s3://lake/w/t", WRITES)
    assert policy_of(ROLE, "s3://lake/w/t", rights=FileRights(False, False)) is None


@pytest.mark.parametrize(
    "location",
    [
        "s3://lake",
        "s3://lake/",
        "s3://lake/*",
        "s3://lake/w/t?",
        "s3://lake/${aws:userid}",
        "s3://*/t",
        "s3://lake/t/",
        "file:///b/t",
        "gs://b/t",
        "s3://lake/" + "x" * 2000,
        "s3://b*/t",
    ],
)
def test_inexpressible_location_gets_no_policy(location: str) -> None:
    """Whole buckets, wildcards, policy variables, other stores, and names that are too long get no policy."""
    assert policy_of(ROLE, location, rights=BOTH) is None


def test_policy_is_ascii_and_uses_the_roles_aws_partition() -> None:
    """A policy is plain ASCII, as STS requires; a role in the AWS China partition gives ARNs of that partition."""
    chinese = AwsRole(
        arn="arn:aws-cn:iam::123456789012:role/t",
        external_id=None,
        duration_s=900,
        endpoint=None,
        region=None,
        keys=(None, None, None),
    )
    policy = policy_of(chinese, "s3://lake/w/tücken", rights=READS) or ""

    assert policy.isascii()
    assert json.loads(policy)["Statement"][2]["Resource"] == "arn:aws-cn:s3:::lake/w/tücken/*"


class Sts:
    """A token service that answers or fails, as the test sets."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure = failure
        self.asked: dict[str, object] = {}

    def assume_role(self, **words: object) -> dict[str, dict[str, object]]:
        """Return the test's answer, or raise its error."""
        self.asked = words
        if self.failure is not None:
            raise self.failure
        expires = datetime(2026, 1, 1, tzinfo=UTC)
        return {"Credentials": {"AccessKeyId": "a", "SecretAccessKey": "b", "SessionToken": "c", "Expiration": expires}}


def test_sts_request_has_role_policy_and_duration(monkeypatch: pytest.MonkeyPatch) -> None:
    """The request has the role, policy, duration and external id; the credentials are not shown in the printed form."""
    sts, role = Sts(), ROLE._replace(external_id="x1", duration_s=900)
    monkeypatch.setattr(credentials, "_client", lambda _: sts)
    role_credentials = assume_role(role, "{}")

    assert role_credentials == ("a", "b", "c", 1_767_225_600_000)
    assert repr(role_credentials) == "Credentials(expires_ms=1767225600000)"
    assert sts.asked == {
        "RoleArn": ARN,
        "RoleSessionName": "limnos",
        "Policy": "{}",
        "ExternalId": "x1",
        "DurationSeconds": 900,
    }


@pytest.mark.parametrize(
    "failure, kind",
    [
        (ClientError({"Error": {"Code": "AccessDenied", "Message": "user/x may not"}}, "AssumeRole"), StorageFailed),
        (ClientError({"Error": {"Code": "Throttling"}}, "AssumeRole"), ServiceUnavailable),
        (EndpointConnectionError(endpoint_url="http://sts"), ServiceUnavailable),
        (NoCredentialsError(), StorageFailed),
    ],
)
def test_sts_failure_hides_the_message_of_sts(
    monkeypatch: pytest.MonkeyPatch, failure: Exception, kind: type[LimnosError]
) -> None:
    """Temporary failures are ServiceUnavailable, others name who can help; the message of STS is only in the log
    context.
    """
    monkeypatch.setattr(credentials, "_client", lambda _: Sts(failure))
    with pytest.raises(kind) as caught:
        assume_role(ROLE, "{}")

    assert str(failure) not in caught.value.message
    assert caught.value.context["cause"] == str(failure)
