"""Which properties of a catalog leave the server, and to whom. Decision record 0018.

May import `model`. Pure. Readers get those that engines need, who may alter the catalog all of them; what is secret in a
name or a value leaves for nobody.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import msgspec

from limnos.model.errors import BadRequest
from limnos.model.kinds import SOURCE_PROVIDERS
from limnos.model.sealed_secrets import SEALED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from limnos.model.entities import Node
    from limnos.model.records import CatalogRecord

MASK = "******"
FOR_READERS = frozenset(
    {
        "adls.account-host", "azure-storage-account-name", "catalog-backend", "catalog-backend-name", "client.region",
        "gcs.project-id", "gcs.service.host", "io-impl", "location", "nested-namespaces", "oss-endpoint", "oss-region", "oss.endpoint", "s3-endpoint",
        "s3-path-style-access", "s3-region", "s3.endpoint", "s3.path-style-access", "s3.region", "scan-planning-mode", "storage", "uri", "warehouse",
    }
)  # fmt: skip
"""What engines configure themselves with. A name that is not here is for who may alter the catalog."""
_NO_SECRETS = frozenset(
    {
        "credential-providers", "credential-cache-expire-ratio", "token-refresh-enabled", "s3-token-expire-in-secs",
        "s3.token-expire-in-secs", "vended-credentials", "s3-token-service-endpoint", "s3.token-service-endpoint",
        "gcs.token-service-endpoint", "gcs.vended-credentials-enabled", "adls.vended-credentials-enabled",
    }
)  # fmt: skip
"""Names that sound like secrets and are none."""
_SECRET = re.compile(
    r"secret|passw|passphrase|pwd|token|credential|key|authorization|cookie|connectionstring|signature|jaas"
)
_USERINFO = re.compile(r"(://[^/?#@\s:]*:)([^/?#@\s]*)(?=@)")
_PARAMETER = re.compile(
    r"([?&;][^=&;?]*(?:secret|passw|pwd|token|credential|key|sig)[^=&;?]*=)([^&;#]*)", re.IGNORECASE
)


def is_secret(name: str) -> bool:
    """Say whether a property's value is a secret, by its name: in any case, with any separators."""
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    return name not in _NO_SECRETS and _SECRET.search(plain) is not None


def mask_passwords(value: str) -> str:
    """Mask a password inside of a value: `://user:password@`, or a parameter of a URL."""
    return replace_passwords(value, lambda _: MASK)


def replace_passwords(value: str, change: Callable[[str], str]) -> str:
    """Change each password inside of a value that is a URL."""
    if "://" not in value:
        return value

    def changed(found: re.Match[str]) -> str:
        return found[1] + change(found[2])

    return _PARAMETER.sub(changed, _USERINFO.sub(changed, value))


def properties_for_reader(properties: Mapping[str, str]) -> dict[str, str]:
    """Return what whoever may use the catalog sees."""
    return {key: mask_passwords(value) for key, value in properties.items() if key in FOR_READERS}


def properties_for_owner(properties: Mapping[str, str]) -> dict[str, str]:
    """Return what whoever may alter the catalog sees: that a secret is set, never the secret."""
    return {key: MASK if is_secret(key) else mask_passwords(value) for key, value in properties.items()}


def _no_properties(_properties: Mapping[str, str]) -> dict[str, str]:
    """Where an outside system is, is nothing for who may only use it: an engine would go there, past the rights that are kept here."""
    return {}


def catalog_mask(node: Node, *, may_alter: bool) -> Node:
    """Return a catalog as somebody may see it. Never write what comes from here."""
    record = cast("CatalogRecord", node.record)
    show = (
        properties_for_owner
        if may_alter
        else _no_properties
        if record.provider in SOURCE_PROVIDERS
        else properties_for_reader
    )
    return msgspec.structs.replace(node, record=replace(record, properties=show(record.properties)))


def check_unmasked(properties: Mapping[str, str]) -> None:
    """Refuse a value that was read with its secret masked, or sealed: only a server seals. Raises BadRequest."""
    for key, value in properties.items():
        if MASK in value:
            raise BadRequest(
                f"Property {key} holds {MASK}, which stands for a secret that is not shown: send the secret itself, or leave "
                "the property out to keep it as it is"
            )
        if SEALED.search(value):
            raise BadRequest(f"Property {key} holds a secret that a server has sealed: send the secret itself")
