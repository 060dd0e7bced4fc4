# SPDX-License-Identifier: Apache-2.0
"""Common values of several areas of the client: creation and change of an object, its name, JSON documents.

Must not know HTTP.
"""

from __future__ import annotations

import msgspec

Parts = tuple[str, ...]
"""A path inside a metalake: catalog, namespaces, and for a table or view its name."""


Json = dict[str, object]
"""A JSON document that is passed on unchanged."""


class AuditInfo(msgspec.Struct, frozen=True, rename="camel"):
    """The creator and the last modifier of an object, with the times. Times are ISO 8601 strings in UTC."""

    creator: str | None = None
    create_time: str | None = None
    last_modifier: str | None = None
    last_modified_time: str | None = None


class ObjectName(msgspec.Struct, frozen=True):
    """An object in an access decision: its kind, and its path as a string."""

    kind: str = ""
    name: str = ""
