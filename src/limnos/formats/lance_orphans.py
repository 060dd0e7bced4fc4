# SPDX-License-Identifier: Apache-2.0
"""Finds orphan files of a Lance table, from the files' names and ages and the bytes of the table's manifests.

Must not know storage. Pure. Manifests are searched, not parsed: a file counts as referenced if its reference (its name,
the bytes of its UUID, or its varint id) occurs anywhere in any manifest. So with an unknown encoding of manifests,
files are retained and never deleted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple
from uuid import UUID

from limnos.formats.lance_manifests import VERSIONS

BYPASSED: Final = "_bypassed"
"""The folder for manifests that belong to no version in the store: readers ignore them."""
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
"""The maximum number of references that are searched for in every manifest in one run; the others wait for the next
run.
"""


class AgedFile(NamedTuple):
    """A file of a table: its name relative to the table, and its modification time in milliseconds since 1970 (0 if
    unknown).
    """

    name: str
    modified_ms: int


class FilesByKind(NamedTuple):
    """Old files of a Lance table that may be deleted, and the manifests that may reference them."""

    unowned: list[str]
    """Old files that can be deleted without a search: unfinished, staged or set aside."""
    marked: Mapping[bytes, list[str]]
    """Old data, deletion and index files, by the bytes with which a manifest references them."""
    transactions: Mapping[bytes, list[str]]
    manifests: list[str]
    """Manifests that may reference files, the newest versions first."""


def own_name(name: str) -> str:
    """Return a file's name without the directory prefix of its branch."""
    match = _BRANCH.match(name)
    return name if match is None else name[match.end() :]


def sort_files(files: Iterable[AgedFile], *, before_ms: int, staged: frozenset[str]) -> FilesByKind:
    """Classify a table's files; files modified before `before_ms` are old.

    `staged` are names of staged manifests that committed versions still need.
    """
    unowned: list[str] = []
    marked: dict[bytes, list[str]] = {}
    transactions: dict[bytes, list[str]] = {}
    manifests: list[str] = []
    for name, modified_ms in files:
        own, is_old = own_name(name), 0 < modified_ms < before_ms
        if _UNFINISHED.fullmatch(own) or _ASIDE.fullmatch(name) or _STAGED.fullmatch(own):
            is_needed = own.rpartition("/")[2] in staged
            if is_old and not is_needed:
                unowned.append(name)
            elif not _UNFINISHED.fullmatch(own):
                manifests.append(name)
        elif own.startswith(f"{VERSIONS}/"):
            manifests.append(name)
        elif is_old:
            mark, results = reference_of(own), transactions if own.startswith("_transactions/") else marked
            if mark is not None:
                results.setdefault(mark, []).append(name)
    return FilesByKind(unowned, marked, transactions, sorted(manifests))


def reference_of(own: str) -> bytes | None:
    """Return the bytes by which a manifest references a file: its name, a varint id or a UUID, by the kind of file.

    None for an unknown kind of file.
    """
    if match := _DATA.fullmatch(own):
        return match[1].encode()
    if match := _DELETIONS.fullmatch(own):
        return varint(int(match[1]))
    if match := _INDEX.fullmatch(own):
        return UUID(match[1]).bytes
    match = _TRANSACTION.fullmatch(own)
    return None if match is None else match[1].encode()


def varint(number: int) -> bytes:
    """Encode a number as a Protobuf varint."""
    data = bytearray()
    while number > 0x7F:
        data.append(0x80 | number & 0x7F)
        number >>= 7
    return bytes((*data, number))


def references_in(manifest: bytes, *, lengths: frozenset[int]) -> Iterator[bytes]:
    """Yield the byte strings of a manifest that are references to files by the known encoding.

    `lengths` are the possible lengths of data files' names.
    """
    for match in _NAMED.finditer(manifest):
        for length in lengths:
            yield manifest[max(0, match.start() - length) : match.start()]
    for pattern in (_IDS, _UUIDS):
        for match in pattern.finditer(manifest):
            yield match[1]


class ReferenceSearch:
    """A search for files that no manifest references: first by the known encoding, then for the remaining candidates
    (`suspects`) by a search of each manifest's bytes.
    """

    def __init__(self, marks: Iterable[bytes]) -> None:
        self.suspects = set(marks)
        self._lengths = frozenset(len(mark) for mark in self.suspects if len(mark) >= 32)

    def clear(self, manifest: bytes) -> bool:
        """Remove the candidates that a manifest references by the known encoding. Returns whether none remains."""
        self.suspects.difference_update(references_in(manifest, lengths=self._lengths))
        return not self.suspects

    def narrow(self) -> None:
        """Limit the candidates to `SUSPECTS_MAX`, which one run of the slow search can process."""
        self.suspects = set(sorted(self.suspects)[:SUSPECTS_MAX])

    def clear_by_bytes(self, manifest: bytes) -> bool:
        """Remove the candidates whose references occur anywhere in a manifest's bytes. Returns whether none remains."""
        self.suspects = {mark for mark in self.suspects if mark not in manifest}
        return not self.suspects
