# SPDX-License-Identifier: Apache-2.0
"""Catalog properties in answers: an allow-list for readers, and masked secrets for owners."""

from __future__ import annotations

import pytest

from limnos.model.errors import BadRequest
from limnos.services.request.catalog_properties import (
    FOR_READERS,
    MASK,
    check_unmasked,
    is_secret,
    mask_passwords,
    properties_for_owner,
    properties_for_reader,
)

SECRETS = [
    "jdbc-password",
    "s3-access-key-id",
    "s3-secret-access-key",
    "s3.access-key-id",
    "s3.secret-access-key",
    "s3-session-token",
    "s3.session-token",
    "S3.SECRET-ACCESS-KEY",
    "s3.sse.key",
    "client.credentials",
    "oss-access-key-id",
    "oss-secret-access-key",
    "oss.security-token",
    "azure-storage-account-key",
    "azure-client-secret",
    "adls.sas-token.acct",
    "adls.sas-token.acct.dfs",
    "adls.auth.shared-key.account.key",
    "adls.connection-string.acct",
    "gcs-service-account-key",
    "gcs.service-account-key",
    "GCS.oauth2.token",
    "gcs.oauth2.refresh-token",
    "credential",
    "token",
    "oauth2.client-secret",
    "header.Authorization",
    "rest.cookie",
    "hive.metastore.passwd",
    "ssl.truststore.passphrase",
    "db_pwd",
    "private_key",
    "apiKey",
    "secretKey",
    "X-Signature",
]


@pytest.mark.parametrize("name", SECRETS)
def test_secret_properties_are_hidden_from_readers_by_name(name: str) -> None:
    """A property whose name suggests a secret, in any case and spelling, is hidden from readers and masked for the
    owner.
    """
    assert is_secret(name)
    assert properties_for_reader({name: "T0p"}) == {}
    assert properties_for_owner({name: "T0p"}) == {name: MASK}


@pytest.mark.parametrize(
    "name", ["note", "owner-team", "allowed-locations", "jdbc-user", "gravitino.bypass.x", "S3.ENDPOINT"]
)
def test_unlisted_properties_are_hidden_from_readers(name: str) -> None:
    """Properties that are not on the allow-list are hidden from readers."""
    assert properties_for_reader({name: "v"}) == {}
    assert properties_for_owner({name: "v"}) == {name: "v"}


def test_allow_list_contains_no_secret_name() -> None:
    """The allow-list contains no secret name, and its properties are returned unchanged."""
    assert [name for name in FOR_READERS if is_secret(name)] == []
    assert properties_for_reader(dict.fromkeys(FOR_READERS, "v")) == dict.fromkeys(FOR_READERS, "v")


@pytest.mark.parametrize(
    "value, masked",
    [
        ("https://ana:T0p@host/x", "https://ana:******@host/x"),
        ("jdbc:postgresql://host/db?user=ana&password=T0p", "jdbc:postgresql://host/db?user=ana&password=******"),
        ("jdbc:sqlserver://host;user=ana;Password=T0p;x=y", "jdbc:sqlserver://host;user=ana;Password=******;x=y"),
        ("https://host/x?sv=1&sig=T0p#part", "https://host/x?sv=1&sig=******#part"),
        ("abfss://box@acct.dfs.core.windows.net/dir", "abfss://box@acct.dfs.core.windows.net/dir"),
        ("s3://bucket/key=1/part", "s3://bucket/key=1/part"),
        ("plain words", "plain words"),
    ],
)
def test_passwords_inside_of_values_are_masked(value: str, masked: str) -> None:
    """In a URL only the password is masked; a text that only looks like a URL is unchanged."""
    assert mask_passwords(value) == masked


def test_masked_values_are_refused() -> None:
    """A value that contains the mask is refused, because the client has copied it from an answer."""
    check_unmasked({"a": "b"})
    with pytest.raises(BadRequest, match="Property uri is"):
        check_unmasked({"uri": "https://ana:******@host"})
