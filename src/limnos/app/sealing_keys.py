# SPDX-License-Identifier: Apache-2.0
"""Checks whether this server has the keys under which the store's secrets are sealed, with messages for operators.

Reads keys, and creates none.
"""

from __future__ import annotations

from collections.abc import Mapping

from limnos.app.node_builder import key_file_of
from limnos.config.settings import Settings
from limnos.files.key_file import keys_read
from limnos.model.errors import StartWarning
from limnos.model.sealed_secrets import parse_key
from limnos.services.request.secret_sealing import key_name
from limnos.store.backends.sealed_keys import KeyUse, sealed_keys


def missing_keys(settings: Settings, database: str) -> Mapping[str, KeyUse]:
    """Return the encryption keys of a store or a backup that the settings lack, with the count of uses of each.

    Raises CannotStart for a key file that cannot be used.
    """
    file = key_file_of(settings)
    results = [parse_key(each.reveal()) for each in settings.storage.keys] + list(keys_read(file) if file else ())
    here = {key_name(key) for key in results}
    return {key: use for key, use in sealed_keys(database).items() if key not in here}


def keys_origin(settings: Settings) -> str:
    """Return a phrase for messages that names the file or setting from which this server's keys come."""
    file = key_file_of(settings)
    return str(file) if file else "storage.keys" if settings.storage.keys else "storage.key_file, which is not set,"


def keys_text(lacking: Mapping[str, KeyUse]) -> str:
    """List keys with the number of catalogs and webhooks sealed under each."""
    return ", ".join(f"{key} (catalogs: {use.catalogs}, webhooks: {use.webhooks})" for key, use in lacking.items())


def warn_of_keys(settings: Settings, database: str) -> None:
    """Raise StartWarning if secrets of the store are sealed under missing keys."""
    missing_key_uses = missing_keys(settings, database)
    if missing_key_uses:
        raise StartWarning(
            "Secrets of the store cannot be decrypted: keys are missing",
            why=f"sealed under keys that {keys_origin(settings)} does not have: {keys_text(missing_key_uses)}",
            advice=f"restore those keys in {keys_origin(settings)} (one per line, mode 600), or set the secrets again",
        )
