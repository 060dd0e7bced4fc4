# SPDX-License-Identifier: Apache-2.0
"""Passwords of local users, in zone 0 like the tokens. Only hashes are stored, and nothing caches them.

Must not know hash functions.
"""

from __future__ import annotations

from limnos.model.entities import Password
from limnos.model.principals import TokenTrust
from limnos.store.sql import Load, Row, Sql
from limnos.store.transaction import Writes

OF_USER = Sql("SELECT user_name, hash, trust, root_id FROM password WHERE user_name = :user")
PUT = Sql(
    "INSERT INTO password (user_name, hash, trust, root_id, changed_at) VALUES (:user, :hash, :trust, :root, :now)"
    " ON CONFLICT (user_name) DO UPDATE SET hash = excluded.hash, trust = excluded.trust, root_id = excluded.root_id,"
    " changed_at = excluded.changed_at"
)
FORGET = Sql("DELETE FROM password WHERE user_name = :user")


def password_of(rows: list[Row]) -> Password | None:
    """Build a `Password` from the rows of a query; None if there are no rows."""
    return Password(rows[0][0], rows[0][1], TokenTrust(rows[0][2]), rows[0][3]) if rows else None


def password_read(user: str) -> Load[Password | None]:
    """Read a user's hashed password; None if the user has none."""
    return password_of((yield OF_USER, {"user": user}))


class PasswordWrites(Writes):
    """Reads and writes hashed passwords inside a transaction."""

    def find(self, user: str) -> Password | None:
        """Read a user's password inside the transaction, or None."""
        return password_of(self.tx.rows(OF_USER, {"user": user}))

    def put(self, user: str, *, hashed: str, trust: TokenTrust) -> None:
        """Set a user's password.

        The password gets a new token root, which invalidates sessions opened with the old password.
        """
        tx = self.tx
        entries = {"user": user, "hash": hashed, "trust": trust.value, "root": tx.next_id(), "now": tx.now_ms}
        tx.count(PUT, entries)

    def forget(self, user: str) -> bool:
        """Delete a user's password. Returns whether one existed."""
        return self.tx.count(FORGET, {"user": user}) > 0
