"""Scans of Iceberg tables planned here: who may have one planned, and the files of a table read as far as that takes.

May import the rooms below and the part of `formats.scans` that needs no library. Knows no wire format. What is planned is a function of
metadata, request and manifests, worked out in a process that is ended when nobody waits for it (`formats/scans/tasks.py`); whatever
keeps a caller from seeing all of a table belongs into `scan_look`, the one place where a scan is decided. Decision record 0092.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.files import is_within
from limnos.formats.iceberg import metadata as iceberg_metadata
from limnos.formats.scans.portions import portions_of
from limnos.formats.scans.request import Aim, Needed, ScanRequest, aim_of
from limnos.model.errors import Forbidden, Unsupported
from limnos.model.principals import Asker
from limnos.model.restrictions import CLOSED_TO
from limnos.services.catalog.tables import table_look
from limnos.services.iceberg.restricted import bound_sight, is_restricted
from limnos.services.iceberg.scan_turns import SCAN_CHORES, SCAN_TURNS
from limnos.services.request.chores import is_heavy
from limnos.services.request.files import AT_ONCE
from limnos.services.request.parallel import each_of
from limnos.services.request.places import place_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractAsyncContextManager

    from limnos.formats.iceberg.read_restrictions import Bound
    from limnos.model.entities import Document
    from limnos.names.path import Levels
    from limnos.services.lookup.lending import Through
    from limnos.services.request.context import Context
    from limnos.services.request.places import Place
    from limnos.services.request.scene import Scene

LIST_BYTES_MAX: Final = 64 << 20
"""Of one manifest list, or one manifest."""
DELETE_BYTES_MAX: Final = 64 << 20
"""Of all manifests of deletes that one scan has to read, as far as their lists tell."""
READ_BYTES_MAX: Final = 192 << 20
"""Of everything that one step holds at once: a portion of manifests, the largest one, and deletes; whatever lists tell of lengths."""


class Scanned(NamedTuple):
    """A table as far as a scan of it was decided: for whom, and what they ask for."""

    asker: Asker
    document: Document
    place: Place
    asked: ScanRequest
    bound: Bound | None = None
    """What restricts what they may see."""


class Told(NamedTuple):
    """What was planned of a scan, as JSON without brackets: `file-scan-tasks`, and the `delete-files` that they refer to."""

    files: bytes
    deletes: bytes
    sure_rows: int


def scan_look(scene: Scene, path: Levels, *, asked: ScanRequest, through: Through = ()) -> Scanned:
    """Decide on a scan of a table for who may read its rows, by a right of their own or one that views lend. Raises NotFound, Forbidden."""
    asker = Asker(scene.user, scene.subject.user_id or 0)
    try:
        node = table_look(scene, path, action=Action.TABLE_READ, through=through)
    except Forbidden as refused:
        if not is_restricted(refused):
            raise
        document, bound = bound_sight(scene, path)
        return Scanned(asker, document, place_of(scene), asked, bound)
    return Scanned(asker, scene.document(node.id), place_of(scene), asked)


class Scan:
    """One scan under way. Its files lie below the table's own location: nothing else is read, whatever metadata names.

    Raises Forbidden where restrictions bind who asks, and nobody has seen to that.
    """

    def __init__(self, ctx: Context, scanned: Scanned, *, aim: Aim) -> None:
        if scanned.bound is not None:
            raise Forbidden(
                f"Restrictions bind {scanned.asker.name} on this table ({CLOSED_TO}), and this way of planning does not keep them"
            )
        self._files = ctx.services.files
        self._chores = SCAN_CHORES.of(ctx.services)
        self._turns = SCAN_TURNS.of(ctx.services)
        self._scanned = scanned
        self.asker = scanned.asker
        self._filter_bytes = len(bytes(scanned.asked.filter))
        self._files_max = ctx.services.defaults.scan_files_max
        self._aim = msgspec.json.encode(aim)
        self._asked = msgspec.json.encode(scanned.asked)
        self.aim = aim

    async def needed(self) -> Needed:
        """Say which manifests have to be read. Raises BadRequest, MissingFile, InvalidTable, Unsupported."""
        async with self._turn():
            lists = await self._read(self.aim.lists)
            return msgspec.json.decode((await self._do("scan-manifests", *lists))[0], type=Needed)

    def parts(self, needed: Needed) -> list[Needed]:
        """Return what is planned at a time: some manifests of data, with all of deletes."""
        portions = portions_of(needed.data, files_max=self._files_max, filter_bytes=self._filter_bytes)
        return [Needed(needed.data[first:after], needed.deletes) for first, after in portions]

    async def tasks(self, needed: Needed) -> Told:
        """Plan the files of manifests. Raises as `needed` does."""
        if sum(each.length for each in needed.deletes) > DELETE_BYTES_MAX:
            raise Unsupported(
                f"The manifests of deletes of this scan come to over {DELETE_BYTES_MAX} bytes: compact the table, or plan this scan where it is read"
            )
        if not needed.data:
            return Told(b"", b"", 0)
        async with self._turn():
            files = await self._read([each.path for each in (*needed.data, *needed.deletes)])
            found = await self._do("scan-tasks", msgspec.json.encode(needed), *files)
        return Told(found[0], found[1], int(found[2]))

    async def _do(self, name: str, *parts: bytes) -> list[bytes]:
        return await self._chores.do(name, self._aim, self._asked, *parts, caller=self.asker.name)

    def _turn(self) -> AbstractAsyncContextManager[None]:
        return self._turns.turn((("caller", self.asker.name),))

    async def _read(self, locations: Sequence[str]) -> list[bytes]:
        held = 0

        async def read(location: str) -> bytes:
            nonlocal held
            data = await self._read_one(location)
            held += len(data)
            if held > READ_BYTES_MAX:
                raise Unsupported(
                    f"One step of this scan reads over {READ_BYTES_MAX} bytes of manifests or their lists: ask for fewer snapshots, or plan it where it is read"
                )
            return data

        return await each_of(locations, read, at_once=AT_ONCE)

    async def _read_one(self, location: str) -> bytes:
        root = self.aim.location
        if not is_within(location, [root]):
            raise Unsupported(
                f"File {location} of the table lies outside of its location {root}, where nothing is read here: plan this scan where it is read"
            )
        properties = self._scanned.place.catalog.properties
        return await self._files.read_within(location, properties, [root], bytes_max=LIST_BYTES_MAX)


async def scan_of(ctx: Context, scanned: Scanned) -> Scan:
    """Return a scan, with what it is about. Raises BadRequest, Unsupported, OutsideRoots."""
    document = scanned.document
    scanned.place.check(document.location)
    if is_heavy(document):
        parts = await SCAN_CHORES.of(ctx.services).do(
            "scan-aim", document.body, msgspec.json.encode(scanned.asked), caller=scanned.asker.name
        )
        return Scan(ctx, scanned, aim=msgspec.json.decode(parts[0], type=Aim))
    return Scan(ctx, scanned, aim=aim_of(iceberg_metadata.decode(document.body), scanned.asked))
