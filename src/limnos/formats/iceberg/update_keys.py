# SPDX-License-Identifier: Apache-2.0
"""Updates of encryption keys (format version 3 and later): add and remove.

Must not know other updates.
"""

from __future__ import annotations

import base64

from limnos.formats.iceberg.draft import MetadataDraft
from limnos.formats.iceberg.json_types import Json, object_at, optional_string_at, string_map_at, text_at, without_nulls
from limnos.model.errors import BadRequest

FIRST_VERSION_WITH_KEYS = 3
_KEYS = "encryption-keys"


def add_encryption_key(draft: MetadataDraft, update: Json) -> None:
    """Add an encryption key. No-op if its key id exists.

    Raises BadRequest for a malformed key, or a format version before 3.
    """
    key = without_nulls(object_at(update, "encryption-key", where="add-encryption-key"))
    key_id = text_at(key, "key-id", where="add-encryption-key")
    key = pad_key(key)
    check_key(key, where="add-encryption-key")
    if draft.version < FIRST_VERSION_WITH_KEYS:
        raise BadRequest(f"A v{draft.version} table has no encryption keys; upgrade its format-version to 3 first")
    if draft.rows(_KEYS).find(key_id) is None:
        draft.rows(_KEYS).append(key)


def pad_key(key: Json) -> Json:
    """Return an encryption key whose metadata has base64's padding: Iceberg's Java library reads it without, others do
    not.
    """
    text = key.get("encrypted-key-metadata")
    if not isinstance(text, str) or len(text) % 4 == 0:
        return key
    return {**key, "encrypted-key-metadata": text + "=" * (-len(text) % 4)}


def check_key(key: Json, *, where: str) -> None:
    """Check the fields of an encryption key. Raises BadRequest."""
    text_at(key, "key-id", where=where)
    try:
        base64.b64decode(text_at(key, "encrypted-key-metadata", where=where), validate=True)
    except ValueError:
        raise BadRequest(f"{where}: field 'encrypted-key-metadata' must be base64 with its padding") from None
    optional_string_at(key, "encrypted-by-id", where=where)
    if key.get("properties") is not None:
        string_map_at(key, "properties", where=where)


def remove_encryption_key(draft: MetadataDraft, update: Json) -> None:
    """Remove an encryption key. No-op if it is missing."""
    draft.rows(_KEYS).remove([text_at(update, "key-id", where="remove-encryption-key")])
