"""Updates of encryption keys (format version 3 and later): add and remove.

May import the standard library, `limnos.model.errors` and this package. Must not know other updates.
"""

from __future__ import annotations

from limnos.formats.iceberg.draft import MetadataDraft
from limnos.formats.iceberg.json_types import Json, object_at, optional_string_at, text_at
from limnos.model.errors import BadRequest

_KEYS = "encryption-keys"


def add_encryption_key(draft: MetadataDraft, update: Json) -> None:
    """Add an encryption key. No-op if its key id exists.

    Raises BadRequest for a malformed key, or a format version before 3.
    """
    key = object_at(update, "encryption-key", where="add-encryption-key")
    key_id = text_at(key, "key-id", where="add-encryption-key")
    text_at(key, "encrypted-key-metadata", where="add-encryption-key")
    optional_string_at(key, "encrypted-by-id", where="add-encryption-key")
    if draft.version < 3:
        raise BadRequest(f"A v{draft.version} table has no encryption keys; upgrade its format-version to 3 first")
    if draft.rows(_KEYS).find(key_id) is None:
        draft.rows(_KEYS).append(key)


def remove_encryption_key(draft: MetadataDraft, update: Json) -> None:
    """Remove an encryption key. No-op if it is missing."""
    draft.rows(_KEYS).remove([text_at(update, "key-id", where="remove-encryption-key")])
