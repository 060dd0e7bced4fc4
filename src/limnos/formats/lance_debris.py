"""Which files of a Lance table no version knows: told from their names, their age and the bytes of the table's manifests.

May import this room and the standard library. Pure. A manifest is not understood, it is searched: a file is known if what stands for it in manifests (its
name, the bytes of its UUID, its number) occurs in any of them, wherever. So a way of writing manifests that is not known here leaves files where they are,
and deletes none.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from limnos.formats.lance_manifests import VERSIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

BYPASSED: Final = "_bypassed"
"""Where manifests go that no version of the store's is about: beside the table's own, where no reader looks."""
_BRANCH: Final = re.compile(r"tree/(?:[^/]+/)+?(?=(?:data|_[a-z]+)/)")
_DATA: Final = re.compile(r"data/([0-9a-f]{32,64})(?:\.lance|/.+)")
_UNFINISHED: Final = re.compile(r"data/\.tmp[^/]*")
_DELETIONS: Final = re.compile(r"_deletions/\d+-\d+-(\d+)\.(?:arrow|bin)")
_INDEX: Final = re.compile(r"_indices/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/.+")
_TRANSACTION: Final = re.compile(r"_transactions/(\d+-[0-9a-f-]{36}\.txn)")
_STAGED: Final = re.compile(rf"{VERSIONS}/\d{{1,20}}\.manifest[-.#].+")
_ASIDE: Final = re.compile(rf"{BYPASSED}/.+")

_NAMED: Final = re.compile(rb"\.lance")
_IDS: Final = re.compile(rb"(?=\x18([\x80-\xff]{0,9}[\x00-\x7f]))", re.DOTALL)
_UUIDS: Final = re.compile(rb"(?=\x0a\x10(.{16}))", re.DOTALL)
SUSPECTS_MAX: Final = 500
"""Marks that are searched for in every manifest, in one round; the others wait for the next."""


class AgedFile(NamedTuple):
    """A file of a table: its name relative to the table, and when it was written, in milliseconds since 1970; 0 when nobody knows."""

    name: str
    modified_ms: int


class FilesByKind(NamedTuple):
    """The files of a table as far as they are of its own kinds."""

    unowned: list[str]
    """Old enough to go without another look: what was never finished, staged or moved aside."""
    marked: Mapping[bytes, list[str]]
    """Old files of rows, deletions and indices, by what stands for them in a manifest that knows them."""
    transactions: Mapping[bytes, list[str]]
    manifests: list[str]
    """What may know files, the newest versions first."""


def own_name(name: str) -> str:
    """Take the branch off a file's name."""
    found = _BRANCH.match(name)
    return name if found is None else name[found.end() :]


def sort_files(files: Iterable[AgedFile], *, before_ms: int, staged: frozenset[str]) -> FilesByKind:
    """Sort a table's files; `staged` are names of manifests that committed versions still need."""
    unowned: list[str] = []
    marked: dict[bytes, list[str]] = {}
    transactions: dict[bytes, list[str]] = {}
    manifests: list[str] = []
    for name, modified_ms in files:
        own, is_old = own_name(name), 0 < modified_ms < before_ms
        if _UNFINISHED.fullmatch(own) or _ASIDE.fullmatch(name) or _STAGED.fullmatch(own):
            needed = own.rpartition("/")[2] in staged
            if is_old and not needed:
                unowned.append(name)
            elif not _UNFINISHED.fullmatch(own):
                manifests.append(name)
        elif own.startswith(f"{VERSIONS}/"):
            manifests.append(name)
        elif is_old:
            mark, found = reference_of(own), transactions if own.startswith("_transactions/") else marked
            if mark is not None:
                found.setdefault(mark, []).append(name)
    return FilesByKind(unowned, marked, transactions, sorted(manifests))


def reference_of(own: str) -> bytes | None:
    """Return what stands for a file in a manifest that knows it; None for files of no kind that is known here."""
    if found := _DATA.fullmatch(own):
        return found[1].encode()
    if found := _DELETIONS.fullmatch(own):
        return varint(int(found[1]))
    if found := _INDEX.fullmatch(own):
        return UUID(found[1]).bytes
    found = _TRANSACTION.fullmatch(own)
    return None if found is None else found[1].encode()


def varint(number: int) -> bytes:
    """Spell a number as Protobuf does."""
    found = bytearray()
    while number > 0x7F:
        found.append(0x80 | number & 0x7F)
        number >>= 7
    return bytes((*found, number))


def references_in(manifest: bytes, *, lengths: frozenset[int]) -> Iterator[bytes]:
    """Give the marks that stand in a manifest where they are expected; `lengths` are those of the names of data files."""
    for found in _NAMED.finditer(manifest):
        for length in lengths:
            yield manifest[max(0, found.start() - length) : found.start()]
    for pattern in (_IDS, _UUIDS):
        for found in pattern.finditer(manifest):
            yield found[1]


class ReferenceSearch:
    """A search for what no manifest knows: first a quick one, then each suspect by itself."""

    def __init__(self, marks: Iterable[bytes]) -> None:
        self.suspects = set(marks)
        self._lengths = frozenset(len(mark) for mark in self.suspects if len(mark) >= 32)

    def clear(self, manifest: bytes) -> bool:
        """Clear those that stand where they are expected; says whether none is left."""
        self.suspects.difference_update(references_in(manifest, lengths=self._lengths))
        return not self.suspects

    def narrow(self) -> None:
        """Leave to another round what is too much for one."""
        self.suspects = set(sorted(self.suspects)[:SUSPECTS_MAX])

    def clear_wholly(self, manifest: bytes) -> bool:
        """Clear those that occur anywhere; says whether none is left."""
        self.suspects = {mark for mark in self.suspects if mark not in manifest}
        return not self.suspects
