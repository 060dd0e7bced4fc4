# SPDX-License-Identifier: Apache-2.0
"""The commands `server backup` and `server restore`: select the store, and report the result."""

from __future__ import annotations

from pathlib import Path

from limnos.app.node_builder import database_of
from limnos.app.sealing_keys import keys_origin, keys_text, missing_keys
from limnos.config.settings import Settings
from limnos.store.backends.backups import BadBackup, backup_check, backup_restore, backup_write
from limnos.store.backends.sealed_keys import sealed_keys


def backup(settings: Settings, target: Path) -> str:
    """Copy an SQLite store to the file `target`. Returns a report. Raises BadBackup, also for a store on PostgreSQL."""
    size = backup_write(_file_of(settings, "pg_dump --format=custom"), target)
    summary = f"{target}: {size} bytes, complete, mode 600"
    uses = sealed_keys(str(target))
    if not uses:
        return summary
    origin, missing_key_names = keys_origin(settings), missing_keys(settings, str(target))
    summary += (
        f"\nSecrets in it are sealed. Keep a copy of the keys in {origin}, apart from the backup: without them the"
        f" secrets are lost. Keys: {', '.join(uses)}"
    )
    return (
        f"{summary}\nKeys that this server does not have either: {keys_text(missing_key_names)}"
        if missing_key_names
        else summary
    )


def restore(settings: Settings, source: Path, *, keeps_tokens: bool, vouched: bool, without_keys: bool = False) -> str:
    """Replace an SQLite store by a backup. Returns a report.

    Tokens that are not valid in the replaced store are revoked; if that store cannot be read, all tokens, unless
    `keeps_tokens`. `vouched`: accept a copy that was not made by `server backup`. Raises BadBackup, and changes
    nothing, if the backup or the store cannot be used, or if secrets are sealed under missing keys, unless
    `without_keys`.
    """
    database = _file_of(settings, "pg_restore, then 'limnos server migrate --restored'")
    backup_check(source, vouched=vouched)
    missing_key_names = missing_keys(settings, str(source))
    if missing_key_names and not without_keys:
        raise BadBackup(
            f"Secrets in {source} are sealed under keys that {keys_origin(settings)} does not have:"
            f" {keys_text(missing_key_names)}. Put the copy of the keys there first (one per line, mode 600), or"
            " discard the secrets: --without-keys"
        )
    replaced_path, revoked_count = backup_restore(database, source, keeps_tokens=keeps_tokens, vouched=vouched)
    stored_text = f"; the previous store is now {replaced_path}" if replaced_path else ""
    return (
        f"{source} is the store at {database}{stored_text}. Tokens revoked: {revoked_count}."
        " Users, roles and grants are as they were at the backup: repeat the revocations made since then"
        + (", which a query of docs/guides/backup.md lists from the previous store" if replaced_path else "")
        + (
            f"\nSecrets that cannot be decrypted because keys are missing: {keys_text(missing_key_names)}"
            if missing_key_names
            else ""
        )
    )


def _file_of(settings: Settings, instead: str) -> Path:
    database = database_of(settings)
    if "://" in database:
        raise BadBackup(
            f"This store is on PostgreSQL: use its own tools, {instead}; docs/guides/backup.md has the commands"
        )
    return Path(database)
