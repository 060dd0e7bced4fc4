# SPDX-License-Identifier: Apache-2.0
"""Increments of a Lance table: the rows of fragments that were added since a version, or the reason for a full read.

Compares the fragments of versions, which are files that never change, and trusts no description of a change but that of
a compaction, whose numbers of rows must agree. Rows that were changed or removed need a full read. If a compaction has
merged added fragments with others, their rows are read at the version before it. Must not know steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Final

import lance
from pyspark.sql import functions as f

from limnos.model.errors import InvalidTable
from limnos.names import display
from limnos.pipeline.checkpoints import snapshot_of
from limnos.pipeline.engine.connection import lance_access_of
from limnos.pipeline.engine.increments import Increment
from limnos.pipeline.engine.lance.failures import lance_errors
from limnos.pipeline.engine.lance.reading import (
    digest_of,
    files_of,
    fragment_states,
    load_version,
    require_pinned,
    version_reader,
)
from limnos.pipeline.failures import WholeReadNeeded
from limnos.spark.lance.reading import LanceTableFiles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from limnos.pipeline.outcomes import ReadPin

VERSIONS_MAX: Final = 1_000
"""The largest number of versions that are compared one by one."""


@dataclass(slots=True)
class AddedFragments:
    """Fragments with added rows: those that are still there, and those to read at an earlier version."""

    current: frozenset[int] = frozenset()
    earlier: list[tuple[int, frozenset[int]]] = field(default_factory=list)


def lance_increment(spark: SparkSession, pin: ReadPin, *, state: object) -> Increment:
    """Return the rows that the pinned version has in addition to the one in `state`, from a checkpoint; or why all rows
    must be read.
    """
    access = lance_access_of(spark)
    since = snapshot_of(state) if isinstance(state, str) else None
    if since is None:
        return Increment(whole_because=f"{pin.name} was not read before")
    digest = str(state).rpartition(":")[2]
    with lance_errors():
        files = require_pinned(access, pin)
        if files is None:
            return Increment(whole_because=f"{pin.name} has no rows any longer")
        loaded = load_version(access, pin.table or (), version=since)
        if loaded is None or loaded.version is None:
            return Increment(whole_because=f"{pin.name}: version {since}, which was read last time, no longer exists")
        try:
            added = added_fragments(files, since=files_of(loaded), digest=digest)
        except (WholeReadNeeded, InvalidTable) as error:
            return Increment(whole_because=f"{pin.name}: {error}")
        frame = _rows(spark, pin, files=files, added=added)
    return Increment(frame=frame, only_new=True, is_empty=not added.current and not added.earlier)


def _rows(spark: SparkSession, pin: ReadPin, *, files: LanceTableFiles, added: AddedFragments) -> DataFrame:
    name = display.render(pin.table or ())
    reads = [(LanceTableFiles(files.location, version, files.options), ids) for version, ids in added.earlier]
    frames = [
        version_reader(spark, each).option("fragments", ",".join(map(str, sorted(ids)))).load(name)
        for each, ids in (*reads, (files, added.current))
        if ids
    ]
    if not frames:
        return version_reader(spark, files).load(name).where(f.lit(False))
    return reduce(lambda one, other: one.unionAll(other), frames)


def added_fragments(until: LanceTableFiles, *, since: LanceTableFiles, digest: str) -> AddedFragments:
    """Return the fragments whose rows are new since a version.

    Raises WholeReadNeeded if rows were changed or removed, or if that is not known.
    """
    old, new = since.open(), until.open()
    former_states, after = fragment_states(old), fragment_states(new)
    if digest_of(old) != digest:
        raise WholeReadNeeded("it was dropped and created again since it was last read")
    if not former_states:
        raise WholeReadNeeded(f"version {since.version}, which was read last time, had no rows")
    if old.schema != new.schema:
        raise WholeReadNeeded("its columns were changed since")
    if until.version < since.version:
        raise WholeReadNeeded(f"it was rolled back to version {until.version}")
    if all(after.get(number) == state for number, state in former_states.items()):
        return AddedFragments(current=frozenset(after) - frozenset(former_states))
    if until.version - since.version > VERSIONS_MAX:
        raise WholeReadNeeded(f"fragments were changed since, and more than {VERSIONS_MAX} versions are in between")
    return _by_versions(until, since=since, before=former_states)


def _by_versions(until: LanceTableFiles, *, since: LanceTableFiles, before: Mapping[int, str]) -> AddedFragments:
    """Follow the fragments from version to version: only a compaction may replace those of rows that were read."""
    added_numbers: frozenset[int] = frozenset()
    earlier: list[tuple[int, frozenset[int]]] = []
    for dataset in _datasets(until, since=since):
        after = fragment_states(dataset)
        changed_numbers = frozenset(number for number, state in before.items() if after.get(number) != state)
        appeared = frozenset(number for number, state in after.items() if before.get(number) != state)
        if changed_numbers <= added_numbers:
            added_numbers = (added_numbers - changed_numbers) | appeared
        else:
            version = int(dataset.version)
            if not _is_compaction(dataset, old=changed_numbers, before=before, new=appeared):
                raise WholeReadNeeded(f"rows were changed or removed in version {version}")
            if merged := added_numbers & changed_numbers:
                earlier.append((version - 1, merged))
            added_numbers -= changed_numbers
        before = after
    return AddedFragments(current=added_numbers, earlier=earlier)


def _datasets(until: LanceTableFiles, *, since: LanceTableFiles) -> Iterator[lance.LanceDataset]:
    """Yield the versions after `since`, up to `until`. Raises WholeReadNeeded for one that does not exist."""
    for version in range(since.version + 1, until.version):
        try:
            yield LanceTableFiles(until.location, version, until.options).open()
        except (OSError, ValueError) as error:
            raise WholeReadNeeded(f"version {version}, which explains changed fragments, cannot be read") from error
    yield until.open()


def _is_compaction(
    dataset: lance.LanceDataset, *, old: frozenset[int], before: Mapping[int, str], new: frozenset[int]
) -> bool:
    """Return whether a version has replaced exactly the fragments `old` by `new` with as many rows."""
    try:
        transaction = dataset.read_transaction(int(dataset.version))
    except (OSError, ValueError, TypeError):  # pylance 14 cannot read that of a compaction that rewrote an index
        return False
    operation = None if transaction is None else transaction.operation
    if not isinstance(operation, lance.LanceOperation.Rewrite) or not old <= frozenset(before):
        return False
    replaced_fragments = [each for group in operation.groups for each in group.old_fragments]
    rows = sum(each.num_rows for each in (one.metadata for one in dataset.get_fragments()) if each.id in new)
    return (
        frozenset(each.id for each in replaced_fragments) == old
        and sum(each.num_rows for each in replaced_fragments) == rows
    )
