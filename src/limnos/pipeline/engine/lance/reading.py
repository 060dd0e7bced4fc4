# SPDX-License-Identifier: Apache-2.0
"""Reads of Lance tables by steps: at the version that was the newest when the run began, or that this run has staged.

A pin has the version's number and a digest of its fragments: the versions of a table that is dropped and declared again
have the same numbers. A staged version has no manifest that readers find, so a copy of its manifest is read. Must not
know steps.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lance.file import LanceFileSession

from limnos.client.errors import NotFoundError
from limnos.formats.lance_manifests import VERSIONS, manifest_name, staged_name, staged_version
from limnos.formats.lance_orphans import BYPASSED
from limnos.model.errors import CommitConflict, NotFound
from limnos.names import display
from limnos.names.percent import unquote_strict
from limnos.pipeline.engine.connection import lance_access_of
from limnos.pipeline.engine.lance.failures import lance_errors
from limnos.pipeline.failures import StepFailed
from limnos.pipeline.outcomes import LanceState, ReadPin
from limnos.pipeline.problems import AbsentTable
from limnos.spark.lance.reading import LanceTableFiles
from limnos.spark.lance.server_access import SOURCE, LanceOptions
from limnos.spark.session import register_lance

if TYPE_CHECKING:
    import lance
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

    from limnos.client.values import LanceTable
    from limnos.pipeline.declared_values import Parts
    from limnos.pipeline.outcomes import StagedVersion
    from limnos.spark.lance.server_access import ServerAccess

_DIGITS: Final = 32
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*://[^/]*/")


def pin_lance_table(access: ServerAccess, table: Parts) -> ReadPin:
    """Pin a table at its newest version. Raises NotFound for a table that does not exist or is not visible, and
    StepError for other errors.
    """
    name = ".".join(table)
    with lance_errors():
        loaded = load_version(access, table)
        if loaded is None:
            raise AbsentTable(table)
        if loaded.version is None:
            return ReadPin(name=name, table=table, lance=LanceState())
        state = LanceState(digest=digest_of(files_of(loaded).open()))
    return ReadPin(name=name, table=table, snapshot=loaded.version, lance=state)


def lance_read(spark: SparkSession, pin: ReadPin) -> tuple[DataFrame, ReadPin]:
    """Return the rows of a pinned table, and the pin, now with the digest of a staged version. Nothing is read yet.

    Raises NotFound for a version that does not exist any longer, and CommitConflict for another table of the same name.
    """
    with lance_errors():
        files = require_pinned(lance_access_of(spark), pin)
        if files is None or pin.lance is None:
            raise NotFound(
                f"{pin.name} was declared, and has no rows and no columns yet: write to it first", kind="version"
            )
        if not pin.lance.digest:
            pin = replace(pin, lance=replace(pin.lance, digest=digest_of(files.open())))
        return version_reader(spark, files).load(display.render(pin.table or ())), pin


def version_reader(spark: SparkSession, files: LanceTableFiles) -> DataFrameReader:
    """Return a reader of a table's version, with the caller's credential."""
    register_lance(spark, lance_access_of(spark), lineage=False)
    reader = spark.read.format(SOURCE)
    if files.manifest is None:
        return reader.option("version", str(files.version))
    return reader.option("staged", str(files.version)).option("manifest", files.manifest)


def require_pinned(access: ServerAccess, pin: ReadPin) -> LanceTableFiles | None:
    """Return the files of a pinned version; None for a table without data. Raises as `lance_read` does."""
    table, version = pin.table or (), pin.snapshot
    if version is None or pin.lance is None:
        return None
    if pin.lance.staged is not None:
        loaded = load_version(access, table)
        if loaded is None:
            raise NotFound(f"{pin.name} was dropped or renamed since the run began.", kind="table")
        return _staged_files(loaded, pin.lance.staged)
    loaded = load_version(access, table, version=version)
    if loaded is None or loaded.version is None:
        raise NotFound(
            f"Version {version} of {pin.name}, which the run reads, no longer exists: run the pipeline again.",
            kind="version",
        )
    files = files_of(loaded)
    if pin.lance.digest and digest_of(files.open()) != pin.lance.digest:
        raise CommitConflict(f"{pin.name} was dropped and created again since the run began: run the pipeline again.")
    return files


def has_pinned(access: ServerAccess, pin: ReadPin) -> bool:
    """Return whether a pinned version still exists."""
    try:
        with lance_errors():
            require_pinned(access, pin)
    except (CommitConflict, NotFound, StepFailed):
        return False
    return True


def files_of(table: LanceTable) -> LanceTableFiles:
    """Return the files of a loaded table with data."""
    return LanceTableFiles(table.location, table.version or 0, dict(table.storage_options))


def digest_of(dataset: lance.LanceDataset) -> str:
    """Return a digest of a version's fragments: their files, and the rows deleted in them."""
    text = "\n".join(f"{number} {state}" for number, state in sorted(fragment_states(dataset).items()))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def fragment_states(dataset: lance.LanceDataset) -> dict[int, str]:
    """Return the descriptions of a version's fragments by their numbers. Equal descriptions have equal rows."""
    return {
        each.fragment_id: json.dumps(each.metadata.to_json(), sort_keys=True, default=str)
        for each in dataset.get_fragments()
    }


def load_version(access: ServerAccess, table: Parts, *, version: int | None = None) -> LanceTable | None:
    """Load a table at a version, by default the newest; None if it does not exist."""
    with access.client() as client:
        try:
            return LanceOptions(path=table, version=version).load(client)
        except NotFoundError:
            return None


def _staged_files(table: LanceTable, staged: StagedVersion) -> LanceTableFiles:
    """Return the files of a staged version, whose manifest is copied to the place of manifests without a version.

    The copy has a manifest's final name, because Lance's library gives another manifest its final name when it reads
    it, and the server would then find a version that nobody has committed.
    """
    name = staged_name(staged.manifest_path, table=_store_segments(table.location), branch="")
    parsed = staged_version(name)
    if parsed is None:
        raise NotFound(f"{name} is not a staged manifest", kind="version")
    directory = f"{BYPASSED}/{hashlib.sha256(name.encode()).hexdigest()[:_DIGITS]}"
    copy = f"{directory}/{manifest_name(*parsed)}"
    session = LanceFileSession(table.location, storage_options=dict(table.storage_options) or None)
    if not session.contains(copy):
        with tempfile.TemporaryDirectory(prefix="limnos-manifest-") as local:
            file = Path(local) / "manifest"
            try:
                session.download_file(f"{VERSIONS}/{name}", file)
            except OSError as error:
                raise NotFound(
                    f"The version of {display.render(table.path)} that this run has staged is gone: it was published,"
                    " or deleted because of its age. Run the pipeline again.",
                    kind="version",
                ) from error
            session.upload_file(file, copy)
    prefix = staged.manifest_path.removesuffix(f"/_versions/{name}")
    return LanceTableFiles(table.location, staged.version, dict(table.storage_options), f"{prefix}/{copy}")


def _store_segments(location: str) -> tuple[str, ...]:
    """Return the segments of a location's path in its store, without scheme and bucket."""
    path = location.removeprefix("file:") if location.startswith("file:") else _SCHEME.sub("", location)
    return tuple(unquote_strict(each) for each in path.strip("/").split("/"))
