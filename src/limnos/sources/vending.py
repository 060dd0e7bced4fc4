"""Who gives out credentials for places in a store, of whichever kind: a role of Amazon's, an account of Google's.

May import `model` and this room. Each says which policy opens one place, asks for credentials under it, and how long they last; whoever keeps and hands them out need not
know of which kind they are. Decision records 0059 and 0105.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limnos.sources.credentials import ROLE, Credentials, Role, check_role, role_of
from limnos.sources.gcs import VENDED, GcsAccount, GcsToken, account_of, check_account

if TYPE_CHECKING:
    from collections.abc import Mapping

Giver = Role | GcsAccount
Given = Credentials | GcsToken
SWITCHES = {"s3": ROLE[0], "gs": VENDED[0]}
"""The property that has credentials given out, by the scheme of the places."""


def giver_of(properties: Mapping[str, str], scheme: str) -> Giver | None:
    """Return who gives out credentials for places of a scheme; None where nobody does. Raises BadRequest for properties that can't be right."""
    if scheme == "s3":
        return role_of(properties)
    return account_of(properties) if scheme == "gs" else None


def check_givers(properties: Mapping[str, str]) -> None:
    """Refuse what can be no part of any. Raises BadRequest."""
    check_role(properties)
    check_account(properties)


def asked(giver: Giver, policy: str) -> Given:
    """Ask for credentials under a policy; blocks. Raises Unavailable, StorageFailed, Unsupported."""
    return giver.ask(policy)
