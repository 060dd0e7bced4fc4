# SPDX-License-Identifier: Apache-2.0
"""The header `X-Gravitino-Active-Roles`, which limits a request to some of its caller's roles.

Must not know protocols: `Subject.narrow_to_roles` applies the roles.
"""

from __future__ import annotations

from typing import Final

from limnos.model.errors import BadRequest

ACTIVE_ROLES: Final = b"x-gravitino-active-roles"
_SHOWN: Final = "X-Gravitino-Active-Roles"
_EVERY, _NONE = "ALL", "NONE"


def active_roles_of(sent: bytes) -> frozenset[str] | None:
    """Parse the header's value: role names separated by commas, `ALL` or `NONE`.

    Whitespace around a name is removed, and duplicates are merged. Returns None for `ALL` and for an empty value.
    Raises BadRequest if the value is not UTF-8, has an empty entry, or combines `ALL` or `NONE` with another entry.
    """
    try:
        text = sent.decode().strip()
    except UnicodeDecodeError:
        raise BadRequest(f"Header {_SHOWN} is not UTF-8: send names of roles, or {_EVERY} or {_NONE}") from None
    if not text:
        return None
    names = [name.strip() for name in text.split(",")]
    if "" in names:
        raise BadRequest(f"Header {_SHOWN} has an empty entry: send names of roles with one comma between them")
    if len(names) > 1 and not {_EVERY, _NONE}.isdisjoint(names):
        raise BadRequest(f"Header {_SHOWN} has {_EVERY} or {_NONE} with other entries: each must be the only entry")
    if names == [_EVERY]:
        return None
    return frozenset() if names == [_NONE] else frozenset(names)


def refuse_active_roles() -> BadRequest:
    """Return the error for a request with the header on a route that does not support it.

    Ignoring the header would grant more than the client requested.
    """
    return BadRequest(
        f"Header {_SHOWN} is not served at this address, only over Gravitino, Iceberg and Lance REST: leave it out"
    )
