# SPDX-License-Identifier: Apache-2.0
"""Tokens of the server, in zone 0: API tokens, session tokens, console sessions, and secrets of service accounts. Only
hashes are stored.

Must not know rights.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from limnos.model.entities import Token
from limnos.model.kinds import ROOT_ID, Kind
from limnos.model.principals import TokenPurpose, TokenTrust
from limnos.store.changes import ChangeDraft
from limnos.store.sql import Load, Row, Sql
from limnos.store.transaction import Writes

_AUDIT_DETAILS: Final = {
    TokenPurpose.SESSION: "session",
    TokenPurpose.REFRESH: "refresh token of a session",
    TokenPurpose.CLIENT: "secret of a service account",
    TokenPurpose.ACCESS: "access token of a service account",
    TokenPurpose.CONSOLE: "session of the console",
    TokenPurpose.CONSOLE_CODE: "code for a session of the console",
    TokenPurpose.OPERATION: "for one operation of maintenance",
    TokenPurpose.WORK: "for one statement or task",
}
"""What the audit says of a new token, by purpose; nothing of one that a user made for programs."""
_COLUMNS = (
    "id, user_name, name, secret_hash, created_at, expires_at, revoked, trust, coalesce(root_id, id), purpose,"
    " opened_by, ends_at, table_id, second_user_id, signed_in_at"
)
BY_ID = Sql(f"SELECT {_COLUMNS} FROM token WHERE id = :id")
OF_USER = Sql(f"SELECT {_COLUMNS} FROM token WHERE user_name = :user AND purpose = 'api' ORDER BY id")
ALL = Sql(f"SELECT {_COLUMNS} FROM token WHERE purpose = 'api' ORDER BY id")
INSERT = Sql(
    "INSERT INTO token (id, user_name, name, secret_hash, created_at, expires_at, revoked, trust, root_id, purpose,"
    " opened_by, ends_at, table_id, second_user_id, signed_in_at)"
    " VALUES (:id, :user, :name, :secret_hash, :now, :expires_at, :revoked,"
    " :trust, :root, :purpose, :opened_by, :ends_at, :table, :second_user, :signed_in)"
)
REVOKE = Sql("UPDATE token SET revoked = :revoked WHERE id = :id AND revoked <> :revoked")
EXTEND = Sql(
    "UPDATE token SET expires_at = :expires_at WHERE id = :id AND revoked = :no AND expires_at > :now"
    " AND expires_at < :expires_at"
)
OPENED = Sql(
    f"SELECT {_COLUMNS} FROM token WHERE user_name = :user AND revoked = :no"
    " AND (purpose IN ('session', 'refresh', 'console', 'console-code') OR signed_in_at IS NOT NULL) ORDER BY id"
)
COUNT_VALID = Sql(
    "SELECT count(*) FROM token WHERE user_name = :user AND purpose = 'api' AND revoked = :no"
    " AND (expires_at IS NULL OR expires_at > :now)"
)
CONSOLE = Sql(
    f"SELECT {_COLUMNS} FROM token WHERE user_name = :user AND purpose IN ('console', 'console-code') AND revoked = :no"
    " AND expires_at > :now ORDER BY id"
)
OPENED_BY = Sql(
    f"SELECT {_COLUMNS} FROM token WHERE user_name = :user AND opened_by = :opened_by AND revoked = :no ORDER BY id"
)
SECRETS = Sql(f"SELECT {_COLUMNS} FROM token WHERE user_name = :user AND purpose = 'client' ORDER BY id")
ACCOUNTS = Sql(
    "SELECT user_name, count(*), max(created_at), CASE WHEN count(*) = count(expires_at) THEN max(expires_at) END"
    " FROM token WHERE purpose = 'client' AND revoked = :no AND (expires_at IS NULL OR expires_at > :now)"
    " GROUP BY user_name ORDER BY user_name LIMIT :limit"
)
LINE = Sql(
    f"SELECT {_COLUMNS} FROM token WHERE user_name = :user AND coalesce(root_id, id) = :root AND revoked = :no"
    " AND (expires_at IS NULL OR expires_at > :now) ORDER BY id"
)
FORGET_OPENED = Sql(
    "DELETE FROM token WHERE purpose NOT IN ('api', 'client') AND expires_at < :before AND user_name = :user"
)


def token_of(row: Row) -> Token:
    """Build a token from a row whose columns are `_COLUMNS`."""
    return Token(
        id=row[0],
        user=row[1],
        name=row[2],
        secret_hash=bytes(row[3]),
        created_at=row[4],
        expires_at=row[5],
        revoked=bool(row[6]),
        trust=TokenTrust(row[7]),
        root_id=row[8],
        purpose=TokenPurpose(row[9]),
        opened_by=row[10],
        ends_at=row[11],
        table_id=row[12],
        second_user_id=row[13],
        signed_in_at=row[14],
    )


def token_read(token_id: int) -> Load[Token | None]:
    """Read a token by id, even if it was revoked; None if it does not exist."""
    rows = yield BY_ID, {"id": token_id}
    return token_of(rows[0]) if rows else None


def tokens_read(user: str | None) -> Load[tuple[Token, ...]]:
    """Read the API tokens of a user, or of all users for None."""
    if user is None:
        rows = yield ALL, {}
    else:
        rows = yield OF_USER, {"user": user}
    return tuple(token_of(row) for row in rows)


class AccountSecrets(NamedTuple):
    """A service account with the count of its valid secrets, the creation time of the newest, and the latest expiry
    time. `ends_at` None: a secret never expires.
    """

    user: str
    secrets: int
    newest_at: int
    ends_at: int | None


def accounts_read(now_ms: int, *, limit: int) -> Load[tuple[AccountSecrets, ...]]:
    """Read the service accounts that have a valid secret, by name, at most `limit`."""
    rows = yield ACCOUNTS, {"now": now_ms, "no": False, "limit": limit}
    return tuple(AccountSecrets(user, count, newest, ends) for user, count, newest, ends in rows)


def secrets_read(user: str) -> Load[tuple[Token, ...]]:
    """Read the secrets of a service account, including expired and revoked ones."""
    return tuple(token_of(row) for row in (yield SECRETS, {"user": user}))


def console_sessions_read(user: str, now_ms: int) -> Load[tuple[Token, ...]]:
    """Read the valid console sessions and sign-in codes of a user."""
    return tuple(token_of(row) for row in (yield CONSOLE, {"user": user, "no": False, "now": now_ms}))


ENDED_KEPT_MS = 86_400_000


class TokenWrites(Writes):
    """Reads and writes tokens inside a transaction."""

    def create(
        self,
        *,
        user: str,
        name: str,
        secret_hash: bytes,
        expires_at: int | None,
        trust: TokenTrust,
        root_id: int | None = None,
        purpose: TokenPurpose = TokenPurpose.API,
        opened_by: int | None = None,
        ends_at: int | None = None,
        table_id: int | None = None,
        second_user_id: int = 0,
        signed_in_at: int | None = None,
    ) -> Token:
        """Insert a token. Without `root_id` the token is the root of a new token family."""
        tx = self.tx
        token_id = tx.next_id()
        token = Token(
            id=token_id,
            user=user,
            name=name,
            secret_hash=secret_hash,
            created_at=tx.now_ms,
            expires_at=expires_at,
            revoked=False,
            trust=trust,
            root_id=token_id if root_id is None else root_id,
            purpose=purpose,
            opened_by=opened_by,
            ends_at=ends_at,
            table_id=table_id,
            second_user_id=second_user_id,
            signed_in_at=signed_in_at,
        )
        tx.count(
            INSERT,
            {
                "id": token.id,
                "user": user,
                "name": name,
                "secret_hash": secret_hash,
                "now": tx.now_ms,
                "expires_at": expires_at,
                "revoked": False,
                "trust": trust.value,
                "root": token.root_id,
                "purpose": purpose.value,
                "opened_by": opened_by,
                "ends_at": ends_at,
                "table": table_id,
                "second_user": second_user_id,
                "signed_in": signed_in_at,
            },
        )
        self._add_change("create", token, detail=_AUDIT_DETAILS.get(purpose))
        return token

    def by_id(self, token_id: int) -> Token | None:
        """Read a token inside the transaction, or None."""
        rows = self.tx.rows(BY_ID, {"id": token_id})
        return token_of(rows[0]) if rows else None

    def revoke(self, token: Token) -> bool:
        """Revoke a token permanently. Returns False if it was revoked already."""
        revoked = self.tx.count(REVOKE, {"id": token.id, "revoked": True}) > 0
        if revoked:
            self._add_change("revoke", token)
        return revoked

    def close(self, user: str) -> int:
        """Revoke all tokens of a user that come from a sign-in: session tokens, refresh tokens, console sessions and
        codes, and the tokens that were created with them.

        Returns the number of revoked tokens.
        """
        open_tokens = [token_of(row) for row in self.tx.rows(OPENED, {"user": user, "no": False})]
        return sum(self.revoke_family(token) > 0 for token in open_tokens)

    def close_console(self, user: str) -> int:
        """Revoke all console sessions and sign-in codes of a user, and the tokens created with them. Returns how many
        sessions and codes were revoked.
        """
        session_rows = self.tx.rows(CONSOLE, {"user": user, "no": False, "now": self.tx.now_ms})
        return sum(self.revoke_family(token_of(row)) > 0 for row in session_rows)

    def revoke_family(self, token: Token) -> int:
        """Revoke a token, the tokens that were created with it, and recursively those created with them.

        Returns the number of revoked tokens.
        """
        revoked = int(self.revoke(token))
        opened_rows = self.tx.rows(OPENED_BY, {"user": token.user, "opened_by": token.id, "no": False})
        return revoked + sum(self.revoke_family(token_of(row)) for row in opened_rows)

    def count_valid(self, user: str) -> int:
        """Count the valid API tokens of a user."""
        count: int = self.tx.rows(COUNT_VALID, {"user": user, "no": False, "now": self.tx.now_ms})[0][0]
        return count

    def extend(self, token_id: int, *, expires_at: int) -> bool:
        """Set a later expiry time, in milliseconds since 1970, for a valid token, or that of the token that created it
        if that is earlier. Returns whether it was extended.

        No decision depends on a later expiry, so writes in flight do not decide again.
        """
        token = self.by_id(token_id)
        if token is None:
            return False
        ends_at = self.limit_expiry(expires_at, opened_by=token.opened_by)
        entries = {"id": token_id, "expires_at": ends_at, "no": False, "now": self.tx.now_ms}
        is_extended = self.tx.count(EXTEND, entries) > 0
        if is_extended:
            self._add_change("alter", token, moves_access=False)
        return is_extended

    def limit_expiry(self, expires_at: int, *, opened_by: int | None) -> int:
        """Return an expiry time, or that of the token `opened_by` if that is earlier."""
        creator = None if opened_by is None else self.by_id(opened_by)
        return expires_at if creator is None or creator.expires_at is None else min(expires_at, creator.expires_at)

    def secrets(self, user: str) -> list[Token]:
        """Read the valid secrets of a service account."""
        rows = self.tx.rows(SECRETS, {"user": user})
        return [token for token in map(token_of, rows) if not token.revoked and not token.is_over(self.tx.now_ms)]

    def end_line(self, secret: Token) -> bool:
        """Revoke a secret and all valid tokens issued for it. Returns whether the secret was valid before."""
        rows = self.tx.rows(LINE, {"user": secret.user, "root": secret.root_id, "no": False, "now": self.tx.now_ms})
        ended_ids = [token.id for token in map(token_of, rows) if self.revoke(token)]
        return secret.id in ended_ids

    def forget_ended(self, user: str) -> int:
        """Delete a user's tokens, other than API tokens, that expired more than a day ago.

        Returns the number of deleted tokens. Their ids are not reused.
        """
        return self.tx.count(FORGET_OPENED, {"user": user, "before": self.tx.now_ms - ENDED_KEPT_MS})

    def _add_change(
        self, operation: str, token: Token, *, moves_access: bool = True, detail: str | None = None
    ) -> None:
        """Write the change row, with the token's user: `ChangeRow.user_name`."""
        draft = ChangeDraft(
            operation=operation,
            kind=Kind.TOKEN,
            node_id=token.id,
            old_parent=ROOT_ID,
            old_name=token.user,
            moves_access=moves_access,
            detail=detail,
        )
        self.tx.add_change(draft)
