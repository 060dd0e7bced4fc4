"""The issuers of vended credentials for all object stores: AWS roles, Google accounts and Azure accounts.

May import this package. Must not know tables or users. All issuers have the same methods: the policy for one location,
the request for credentials under it, and their lifetime. Decision records 0059, 0105 and 0107.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from limnos.sources import adls, gcs
from limnos.sources.credentials import ROLE, AwsCredentials, AwsRole, check_role, role_of

CredentialIssuer = AwsRole | gcs.GcsAccount | adls.AdlsAccount
IssuedCredentials = AwsCredentials | gcs.GcsToken | adls.AdlsSignature
SWITCHES = {"s3": ROLE[0], "gs": gcs.VENDED[0], "abfs": adls.VENDED[0]}
"""The property that enables vended credentials, by the scheme of locations."""
_GIVERS: dict[str, Callable[[Mapping[str, str]], CredentialIssuer | None]] = {
    "s3": role_of, "gs": gcs.account_of, "abfs": adls.account_of,
}  # fmt: skip


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
