# SPDX-License-Identifier: Apache-2.0
"""The issuers of vended credentials for all object stores: AWS roles, Google accounts and Azure accounts.

Must not know tables or users. All issuers have the same methods: the policy for one location, the request for
credentials under it, and their lifetime. Decision records 0059, 0105 and 0107.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from limnos.model.errors import BadRequest
from limnos.sources import adls, gcs
from limnos.sources.credentials import (
    DURATION_MAX_S,
    ROLE,
    AwsCredentials,
    AwsRole,
    check_role,
    find_property,
    role_of,
)

CredentialIssuer = AwsRole | gcs.GcsAccount | adls.AdlsAccount
IssuedCredentials = AwsCredentials | gcs.GcsToken | adls.AdlsSignature
SWITCHES = {"s3": ROLE[0], "gs": gcs.VENDED[0], "abfs": adls.VENDED[0]}
"""The property that enables vended credentials, by the scheme of locations."""
SIGNS: Final = ("s3.remote-signing-enabled", "s3-remote-signing-enabled")
"""The catalog property that enables request signing."""
SIGNATURE_S: Final = 900
"""How long S3 accepts a signed request, in seconds."""
_GIVERS: dict[str, Callable[[Mapping[str, str]], CredentialIssuer | None]] = {
    "s3": role_of,
    "gs": gcs.account_of,
    "abfs": adls.account_of,
}


def credential_issuer_of(properties: Mapping[str, str], scheme: str) -> CredentialIssuer | None:
    """Return the issuer of credentials for a scheme; None if the catalog has none.

    Raises BadRequest for invalid properties.
    """
    result = _GIVERS.get(scheme)
    return None if result is None else result(properties)


def check_credential_issuers(properties: Mapping[str, str]) -> None:
    """Raise BadRequest for catalog properties that any of the credential issuers rejects."""
    check_role(properties)
    gcs.check_account(properties)
    adls.check_account(properties)


def keys_life_ms(properties: Mapping[str, str], scheme: str, *, is_named: bool) -> int:
    """Return the longest lifetime of the credentials and signatures that a catalog gives for locations of a scheme, in
    milliseconds; 0 if it gives none. Decision record 0164.

    With `is_named` the properties name a storage of the settings, and its own are unknown: the longest possible.
    """
    if scheme not in SWITCHES:
        return 0
    try:
        issuer = None if is_named else credential_issuer_of(properties, scheme)
    except BadRequest:
        is_named, issuer = True, None
    if is_named:
        return DURATION_MAX_S * 1000
    life_s = 0 if issuer is None else issuer.life_s
    if scheme == "s3" and (find_property(properties, SIGNS) or "").lower() == "true":
        life_s = max(life_s, SIGNATURE_S)
    return life_s * 1000
