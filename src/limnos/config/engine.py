"""Settings of SQL++ and of the engine that runs its statements.

May import pydantic, `model`, `names` and this room.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt
from pydantic.functional_validators import AfterValidator

from limnos.config.machine import memory_bytes
from limnos.config.section import SettingsSection
from limnos.config.values import Root, Words, never_or_an_hour
from limnos.names.path import check_part


class SqlppSection(SettingsSection):
    """SQL++, at `/query/service`."""

    enabled: bool = True
    """Serve SQL++; `off` leaves it out."""
    catalog: Annotated[str, AfterValidator(check_part)] = "main"
    """Catalog of the server's metalake in which dataverses lie, as its namespaces."""
    workers_max: PositiveInt = 2
    """Most processes that work out queries over constants and metadata; started when there is such a one. No user's
    take the last one.
    """
    file_roots: Annotated[tuple[Root, ...], Words] = ()
    """Directories below which LOAD and external datasets may read files; unset: none. Separated by commas."""
    export_roots: Annotated[tuple[Root, ...], Words] = ()
    """Directories below which COPY TO may write files on the server's machine; unset: none. Separated by commas."""
    timeout_s: PositiveFloat = 300.0
    """Longest time for one request's statements, in seconds; a request may ask for less."""
    results_max: PositiveInt = 32
    """Most results that are made or kept for one user to be fetched later (`mode` deferred or async)."""
    results_bytes_max: PositiveInt = 1 << 27
    """Most bytes of such results that are kept for one user, in the store."""
    results_keep_s: PositiveInt = 3600
    """How long such a result can be fetched, in seconds after it was made."""

    compact_files: NonNegativeInt = 64
    """A dataset that has so many files more than its size asks for is compacted after the statement that made them; 0:
    none is.
    """
    snapshots_keep_s: int = Field(default=86_400, ge=600)
    """How long a dataset's former states can be read by other engines, in seconds, 600 at least: older ones go when it
    is compacted. Its branches and tags stay.
    """
    debris_age_s: Annotated[int, AfterValidator(never_or_an_hour)] = 259_200
    """How old files of a dataset are that go when it is compacted and no state of it knows them, in seconds: what
    killed statements left. Longer than any statement takes, 3600 at least; 0: none goes.
    """


HEAP_MIB_MIN = 450
"""The minimum heap: Spark reserves 300 MiB, needs half as much again, and refuses to start with less."""


HEAP_DEFAULT = "1g"


def _heap(text: str) -> str:
    """Parse a heap size with which Spark can start and which this machine has.

    The default is not checked against the machine.
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
    """The engine of SQL++: a process with Spark, started for the first statement that reads or changes data."""

    master: str = "local"
    """Spark master that statements run on: `local` is this machine, else a URL as `spark://host:7077`."""
    memory: Annotated[str, Field(pattern="^[1-9][0-9]{0,6}[mg]$"), AfterValidator(_heap)] = HEAP_DEFAULT
    """Memory of the engine's Java heap, as `512m` or `4g`: 450m at least, and no more than this machine has."""
    slots: NonNegativeInt = 0
    """Tasks of Spark at once, of which no statement takes the last; 0: one more than there are processors, at least 3.
    """
    statements_max: PositiveInt = 8
    """Statements that the engine works on at once; others wait. No user's take the last place."""
    idle_s: PositiveFloat = 600.0
    """How long the engine stays without a statement, in seconds."""
