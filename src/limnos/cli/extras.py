# SPDX-License-Identifier: Apache-2.0
"""Import of modules whose libraries the base install lacks.

Must not know other packages.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from limnos.cli.failures import StoppedError
from limnos.model.extras import extra_of, install_hint


def import_extra(module: str, *, extra: str) -> ModuleType:
    """Import a module of Limnos. If its library is not installed, raises StoppedError with the extra to install."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "limnos":
            raise
        extras = extra.split(",")
        missing = extra_of(error.name or "")
        hint = install_hint(*extras, *([missing] if missing and missing not in extras else []))
        raise StoppedError(f"the command needs '{error.name}', which is not installed", hint=hint) from error
