"""Who gives out credentials for places in a store, of whichever kind: a role of Amazon's, an account of Google's or of Azure's.

May import `model` and this room. Each says which policy opens one place, asks for credentials under it, and how long they last; whoever keeps and hands them out need not
know of which kind they are. Decision records 0059, 0105 and 0107.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limnos.sources import adls, gcs
from limnos.sources.credentials import ROLE, AwsCredentials, AwsRole, check_role, role_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

CredentialIssuer = AwsRole | gcs.GcsAccount | adls.AdlsAccount
IssuedCredentials = AwsCredentials | gcs.GcsToken | adls.AdlsSignature
SWITCHES = {"s3": ROLE[0], "gs": gcs.VENDED[0], "abfs": adls.VENDED[0]}
"""The property that has credentials given out, by the scheme of the places."""
_GIVERS: dict[str, Callable[[Mapping[str, str]], CredentialIssuer | None]] = {
    "s3": role_of, "gs": gcs.account_of, "abfs": adls.account_of,
}  # fmt: skip


def credential_issuer_of(properties: Mapping[str, str], scheme: str) -> CredentialIssuer | None:
    """Return who gives out credentials for places of a scheme; None where nobody does. Raises BadRequest for properties that can't be right."""
    found = _GIVERS.get(scheme)
    return None if found is None else found(properties)


def check_credential_issuers(properties: Mapping[str, str]) -> None:
    """Refuse what can be no part of any. Raises BadRequest."""
    check_role(properties)
    gcs.check_account(properties)
    adls.check_account(properties)
