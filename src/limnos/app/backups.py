"""`server backup` and `server restore`: which store, and words for what was done.

May import `config`, `store` and this room.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from limnos.app.building import database_of
from limnos.store.backups import BadBackup, backup_restore, backup_write

if TYPE_CHECKING:
    from limnos.config.settings import Settings


def backup(settings: Settings, target: Path) -> str:
    """Copy the store to a file; says what was done. Raises BadBackup."""
    size = backup_write(_file_of(settings, "pg_dump --format=custom"), target)
    return f"{target}: {size} bytes, whole, mode 600"


def restore(settings: Settings, source: Path, *, keeps_tokens: bool, vouched: bool) -> str:
    """Put a backup in the store's place; says what was done. Raises BadBackup."""
    database = _file_of(settings, "pg_restore, then 'limnos server migrate --restored'")
    replaced, revoked = backup_restore(database, source, keeps_tokens=keeps_tokens, vouched=vouched)
    kept = f"; the store that was there is now {replaced}" if replaced else ""
    return (
        f"{source} is the store at {database}{kept}. Tokens revoked: {revoked}."
        " Users, roles and grants are as they were at the backup: take away again what was taken away since"
    )


def _file_of(settings: Settings, instead: str) -> Path:
    database = database_of(settings)
    if "://" in database:
        raise BadBackup(f"This store is on PostgreSQL: use its own tools, {instead}; docs/backup.md has the commands")
    return Path(database)
