# SPDX-License-Identifier: Apache-2.0
"""Catalog properties in responses: which are visible to a caller. Decision record 0018.

Pure. Readers see the properties that engines need; a caller who may alter the catalog sees all. No response contains a
secret: neither a property with a secret's name, nor a password inside a value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import cast

import msgspec

from limnos.model.entities import Node
from limnos.model.errors import BadRequest
from limnos.model.kinds import is_source_provider
from limnos.model.records import CatalogRecord
from limnos.model.sealed_secrets import SEALED

MASK = "******"
FOR_READERS = frozenset(
    {
        "adls.account-host",
        "azure-storage-account-name",
        "catalog-backend",
        "catalog-backend-name",
        "client.region",
        "gcs.project-id",
        "gcs.service.host",
        "io-impl",
        "location",
        "nested-namespaces",
        "oss-endpoint",
        "oss-region",
        "oss.endpoint",
        "s3-endpoint",
        "s3-path-style-access",
        "s3-region",
        "s3.endpoint",
        "s3.path-style-access",
        "s3.region",
        "scan-planning-mode",
        "storage",
        "successors",
        "uri",
        "warehouse",
    }
)
"""The properties that engines need for their configuration. All others are only for callers who may alter the
catalog.
"""
_NO_SECRETS = frozenset(
    {
        "credential-providers",
        "credential-cache-expire-ratio",
        "token-refresh-enabled",
        "s3-token-expire-in-secs",
        "s3.token-expire-in-secs",
        "vended-credentials",
        "s3-token-service-endpoint",
        "s3.token-service-endpoint",
        "gcs.token-service-endpoint",
        "gcs.vended-credentials-enabled",
        "adls.vended-credentials-enabled",
    }
)
"""Property names that match the patterns of secrets, although the properties are not secret."""
_SECRET = re.compile(
    r"secret|passw|passphrase|pwd|token|credential|key|authorization|cookie|connectionstring|signature|jaas"
)
_SEPARATORS = re.compile(r"[^a-z0-9]+")
_USERINFO = re.compile(r"(://[^/?#@\s:]*:)([^/?#@\s]*)(?=@)")
_PARAMETER = re.compile(
    r"([?&;][^=&;?]*(?:secret|passw|pwd|token|credential|key|sig)[^=&;?]*=)([^&;#]*)", re.IGNORECASE
)


def is_secret(name: str) -> bool:
    """Return whether a property's name, such as `s3.secret-access-key`, marks its value as secret.

    Case and separators are ignored.
    """
    plain_name = _SEPARATORS.sub("", name.lower())
    return name not in _NO_SECRETS and _SECRET.search(plain_name) is not None


def mask_passwords(value: str) -> str:
    """Mask the passwords inside a value, in `://user:password@` or in a parameter of a URL."""
    return replace_passwords(value, lambda _: MASK)


def replace_passwords(value: str, change: Callable[[str], str]) -> str:
    """Replace each password inside a value that is a URL by the result of `change`."""
    if "://" not in value:
        return value

    def change_password(match: re.Match[str]) -> str:
        return match[1] + change(match[2])

    return _PARAMETER.sub(change_password, _USERINFO.sub(change_password, value))


def properties_for_reader(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties visible to every user of the catalog."""
    return {key: mask_passwords(value) for key, value in properties.items() if key in FOR_READERS}


def properties_for_owner(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties visible to a caller who may alter the catalog, with secrets masked."""
    return {key: MASK if is_secret(key) else mask_passwords(value) for key, value in properties.items()}


def _no_properties(_properties: Mapping[str, str]) -> dict[str, str]:
    """Return no properties, for connector catalogs: with the external system's URL, engines could bypass this server's
    access checks.
    """
    return {}


def catalog_mask(node: Node, *, may_alter: bool) -> Node:
    """Return the catalog with the properties visible to a caller.

    Never write the result to the store: secrets are masked.
    """
    record = cast("CatalogRecord", node.record)
    show = (
        properties_for_owner
        if may_alter
        else _no_properties
        if is_source_provider(record.provider)
        else properties_for_reader
    )
    return msgspec.structs.replace(node, record=replace(record, properties=show(record.properties)))


def check_unmasked(properties: Mapping[str, str]) -> None:
    """Raise BadRequest if a property in a request has a masked or encrypted ("sealed") value.

    Only the server encrypts secrets.
    """
    for key, value in properties.items():
        if MASK in value:
            raise BadRequest(
                f"Property {key} is {MASK}, which masks a secret: send the secret itself, or leave "
                "the property out to keep it unchanged"
            )
        if SEALED.search(value):
            raise BadRequest(f"Property {key} is a secret that a server has sealed: send the secret itself")
