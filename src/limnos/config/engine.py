# SPDX-License-Identifier: Apache-2.0
"""Settings of SQL++ and of the engine that runs its statements."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt
from pydantic.functional_validators import AfterValidator

from limnos.config.machine import memory_bytes
from limnos.config.section import SettingsSection
from limnos.config.values import Root, SparkSettings, Words, require_zero_or_an_hour
from limnos.names.path import check_part


class SqlppSection(SettingsSection):
    """SQL++: AsterixDB's query service at `/query/service`."""

    enabled: bool = True
    """Serve SQL++."""
    catalog: Annotated[str, AfterValidator(check_part)] = "main"
    """Catalog of the server's metalake whose namespaces are the dataverses."""
    workers_max: PositiveInt = 2
    """The maximum number of processes for queries over constants and metadata; started on demand. No user can occupy
    the last one.
    """
    file_roots: Annotated[tuple[Root, ...], Words] = ()
    """Directories below which LOAD and external datasets may read files; unset: none. Separated by commas."""
    export_roots: Annotated[tuple[Root, ...], Words] = ()
    """Directories below which COPY TO may write files on the server's machine; unset: none. Separated by commas."""
    timeout_s: PositiveFloat = 300.0
    """The maximum time for one request's statements, in seconds; a request may set a shorter one."""
    results_max: PositiveInt = 32
    """The maximum number of results per user that are computed or stored to be fetched later (`mode` deferred or
    async).
    """
    results_bytes_max: PositiveInt = 1 << 27
    """The maximum bytes of such results per user in the store."""
    results_keep_s: PositiveInt = 3600
    """The time in seconds for which such a result can be fetched after it was computed."""
    streams_max: PositiveInt = 16
    """The maximum number of results that a node sends to one user at once, of those too large to be sent in one piece
    (256 KiB).
    """
    streams_bytes_max: PositiveInt = 1 << 27
    """The maximum bytes of results of queries over constants and metadata that a node has in memory for one user."""

    compact_files: NonNegativeInt = 64
    """The number of files beyond what a dataset's size needs at which the dataset is compacted after a statement; 0:
    never.
    """
    snapshots_keep_s: int = Field(default=86_400, ge=600)
    """The time in seconds, at least 600, for which other engines can read a dataset's earlier snapshots; older ones
    expire when it is compacted. Its branches and tags are kept.
    """
    debris_age_s: Annotated[int, AfterValidator(require_zero_or_an_hour)] = 259_200
    """The age in seconds at which a compaction deletes files of a dataset that no snapshot refers to, such as files of
    killed statements. Longer than any statement takes, at least 3600; 0: none are deleted.
    """


HEAP_MIB_MIN = 450
"""The minimum heap: Spark reserves 300 MiB, needs half as much again, and refuses to start with less."""


HEAP_DEFAULT = "1g"


def _heap(text: str) -> str:
    """Check a heap size, such as `2g`: not less than Spark needs, not more than this machine's memory.

    The default is not checked against the machine. Raises ValueError.
    """
    if text == HEAP_DEFAULT:
        return text
    size = int(text[:-1]) << (10 if text[-1] == "g" else 0)
    has = memory_bytes() >> 20
    if not HEAP_MIB_MIN <= size <= has:
        raise ValueError(
            f"'{text}' is not between {HEAP_MIB_MIN}m, which Spark needs, and {has}m, which this machine has"
        )
    return text


class EngineSection(SettingsSection):
    """The engine of SQL++: a Spark process, started for the first statement that reads or changes data."""

    master: str = "local"
    """Spark master that executes statements: `local` is this machine, else a URL as `spark://host:7077`."""
    conf: SparkSettings = ()
    """Further settings of Spark, as `spark.cores.max=2,spark.executor.memory=1g`; in a file also as a list. Those that
    the engine sets itself are left out, with a line of the log.
    """
    executor_wait_s: PositiveFloat = 60.0
    """The time in seconds that a statement waits for an executor of the cluster before it is refused."""
    memory: Annotated[str, Field(pattern="^[1-9][0-9]{0,6}[mg]$"), AfterValidator(_heap)] = HEAP_DEFAULT
    """Memory of the engine's Java heap, as `512m` or `4g`: at least 450m, and no more than this machine has."""
    slots: NonNegativeInt = 0
    """The number of Spark's task slots, the last of which no statement can occupy; 0: one more than there are
    processors, at least 3.
    """
    statements_max: PositiveInt = 8
    """The maximum number of concurrent statements; others wait. No user can occupy the last place."""
    idle_s: PositiveFloat = 600.0
    """The idle time after which the engine is stopped, in seconds."""
    warm: bool = False
    """Start the engine with the server, not with the first statement that needs it. The idle time begins after the
    first statement.
    """
