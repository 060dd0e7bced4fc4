# SPDX-License-Identifier: Apache-2.0
"""Environment variables that the command line reads, and misspelt ones."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Final

PROCESS_PREFIX: Final = "__"
"""With this the first argument of a process begins that a room starts (`limnos.manifests.manifest.ProcessEntry`)."""
typed_tokens: ContextVar[tuple[str, ...]] = ContextVar("typed_tokens", default=())
"""The command line that runs, as the grammar resolved it. `main` sets it before the command starts."""

VARIABLES: Final = frozenset(
    "LIMNOS_" + tail
    for tail in (
        "URI",
        "USER",
        "TOKEN",
        "TOKEN_FILE",
        "OUTPUT",
        "PROFILES",
        "CA_FILE",
        "METALAKE",
        "SQL_HISTORY",
        "SPARK_MASTER",
        "SPARK_CONNECT",
        "JOB_ID",
        "PIPELINE_HELPER",
        "PIPELINE_HELPER_IDLE_S",
        "FAULT",
        "FAULT_FILE",
    )
)
"""Environment variables that Limnos reads. Settings begin with `LIMNOS__`; `config` checks them."""
_OWN: Final = tuple(f"LIMNOS_{word}" for word in ("_", "TEST_"))


def misspelt_variables(environ: Mapping[str, str]) -> list[str]:
    """Return a sentence for each unknown variable whose name is similar to a known one, in the order of names."""
    tails = {name.removeprefix("LIMNOS_"): name for name in sorted(VARIABLES)}
    names = []
    for name in sorted(environ):
        if name in VARIABLES or not name.startswith("LIMNOS_") or name.startswith(_OWN):
            continue
        near = difflib.get_close_matches(name.removeprefix("LIMNOS_"), tails, n=1, cutoff=0.6)
        if near:
            names.append(f"the environment variable {name} is not read: did you mean {tails[near[0]]}?")
    return names
