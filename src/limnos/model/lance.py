"""Values about Lance tables whose versions the store keeps.

May import the standard library and msgspec alone.
"""

from __future__ import annotations

import msgspec


class LanceVersion(msgspec.Struct, frozen=True):
    """A version of a table in a branch, "" for the main one.

    `staged` is the name under which its writer laid the manifest, beside the place of the final one; "" for a version that was there before
    the store kept any. `metadata` is what the writer says of it, as JSON. `settled`: its manifest has its final name for certain.
    """

    branch: str
    version: int
    scheme: int
    staged: str
    size: int | None
    e_tag: str | None
    metadata: str
    created_at: int
    settled: bool
