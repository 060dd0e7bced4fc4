# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of steps whose tables are Lance tables, in the configuration of the table's versions.

A version has the entries of the version from which it was made, so a checkpoint outlives compactions and the deletion
of old versions, and a restored version has its own. Must not know Spark or steps.
"""

from __future__ import annotations

from collections.abc import Mapping

from limnos.client import Client
from limnos.client.errors import NotFoundError
from limnos.pipeline.checkpoints import INPUTS, RUN
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.definitions import DEFINITION

ENTRIES = (INPUTS, DEFINITION, RUN)
"""The keys of a checkpoint."""


def lance_checkpoint(client: Client, table: Parts) -> Mapping[str, str]:
    """Return the checkpoint of a table's newest version; empty if it has none, or the table has no data.

    Raises ClientError, and the errors of Lance's library for files that cannot be read.
    """
    try:
        dataset = client.lance.dataset(table)
    except NotFoundError:
        return {}
    return entries_of(dataset.config())


def entries_of(config: Mapping[str, str]) -> Mapping[str, str]:
    """Return the checkpoint in the configuration of a version; empty if there is none."""
    return {key: config[key] for key in ENTRIES if key in config} if INPUTS in config else {}


def checkpoint_changes(config: Mapping[str, str], checkpoint: Mapping[str, str] | None) -> dict[str, str | None]:
    """Return the changes of a version's configuration that make it have a checkpoint, or none. A None removes an entry.

    They are empty if the inputs and the definition are the same.
    """
    if checkpoint is None:
        return {key: None for key in ENTRIES if key in config}
    if all(config.get(key) == checkpoint.get(key) for key in (INPUTS, DEFINITION)):
        return {}
    return {key: checkpoint.get(key) for key in ENTRIES}
