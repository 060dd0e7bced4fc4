"""What a process that changes a managed Lance table asks back: the newest versions, one of them, and to commit the next one.

May import the rooms below. Knows no wire format: questions and answers are maps, as Lance's library has them. A commit is decided and made as one
that a client sends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from limnos.model.errors import CommitConflict, LimnosError, NotFound
from limnos.services.lance.commits import NewVersion, version_create
from limnos.services.lance.versions import (
    Window,
    kept_version,
    latest,
    manifests_for,
    shown_of,
    version_describe,
    versions_list,
)
from limnos.sources.lance.questions import KeptVersion

if TYPE_CHECKING:
    from limnos.names.path import Levels
    from limnos.services.lance.tables import LanceTable
    from limnos.services.lance.versions import Shown
    from limnos.services.request.context import Context
    from limnos.services.request.scene import Scope


class Asked(msgspec.Struct):
    """What may be asked back."""

    branch: str | None = None
    limit: int | None = None
    descending: bool = False
    version: int | None = None
    manifest_path: str = ""
    manifest_size: int | None = None
    e_tag: str | None = None
    metadata: dict[str, str] | None = None


class Calls:
    """Answers what is asked back about one table, for who has the change made; `failure` is what nobody else is told of, `made` the version that is committed."""

    def __init__(self, ctx: Context, scope: Scope, *, levels: Levels) -> None:
        self._ctx = ctx
        self._scope = scope
        self._levels = levels
        self.failure: LimnosError | None = None
        self.made: int | None = None

    async def answer(self, name: str, about: bytes) -> list[bytes]:
        """Answer `done` and a map, or `refused` with what it is about and words."""
        asked = msgspec.json.decode(about, type=Asked)
        try:
            told = await self._answered(name, asked)
        except CommitConflict as error:
            return [b"refused", b"conflict", error.message.encode()]
        except NotFound as error:
            if error.kind not in ("version", "branch"):
                self.failure = error
            return [b"refused", error.kind.encode(), error.message.encode()]
        except LimnosError as error:
            self.failure = error
            return [b"refused", b"other", error.message.encode()]
        return [b"done", msgspec.json.encode(told)]

    async def _answered(self, name: str, asked: Asked) -> dict[str, object]:
        ctx, scope, levels, branch = self._ctx, self._scope, self._levels, asked.branch or ""
        if name == "list":
            window = Window(None, asked.limit, asked.descending)
            found, _ = await versions_list(ctx, scope, levels=levels, branch=branch, window=window)
            return {"versions": [kept_of(each) for each in found]}
        if name == "describe":
            version = await version_describe(ctx, scope, levels=levels, branch=branch, version=asked.version)
            return {"version": kept_of(version)}
        metadata = msgspec.json.encode(asked.metadata or {}, order="sorted").decode()
        new = NewVersion(
            asked.version or 0, asked.manifest_path, asked.manifest_size, asked.e_tag, metadata, branch
        )  # fmt: skip
        made = await version_create(ctx, scope, levels=levels, asked=new)
        self.made = made.version
        return {"version": kept_of(made)}


def kept_of(version: Shown) -> KeptVersion:
    """Return a version as Lance's library has it."""
    return KeptVersion(version.version, version.path, version.size, version.e_tag)


async def newest_of(
    ctx: Context, table: LanceTable, *, branch: str | None, version: int | None
) -> dict[str, KeptVersion] | None:  # fmt: skip
    """Return the newest versions that a change may begin with, by branch; None for a table that is not managed.

    Raises NotFound for a branch that is not there, or a version that the change is about.
    """
    if not table.record.managed:
        return None
    if version is not None:
        await kept_version(ctx, table, manifests=manifests_for(ctx, table, branch=branch or ""), version=version)
    found: dict[str, KeptVersion] = {}
    for name in dict.fromkeys(("", branch or "")):
        top = await latest(ctx, table, branch=name)
        if top is not None:
            found[name] = kept_of(shown_of(manifests_for(ctx, table, branch=name), top))
        elif name:
            raise NotFound(name, kind="branch")
    return found
