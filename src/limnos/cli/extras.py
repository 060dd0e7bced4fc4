# SPDX-License-Identifier: Apache-2.0
"""Import of modules whose libraries the base install lacks.

Must not know other packages.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from limnos.cli.failures import StoppedError
from limnos.model.extras import extra_of, install_hint, is_client_only, missing_module_text


def import_extra(module: str, *, extra: str) -> ModuleType:
    """Import a module of Limnos or a library of an extra. Raises StoppedError with what to install if it is missing."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        name = error.name or ""
        is_own = name.partition(".")[0] == "limnos"
        if is_own and not is_client_only():
            raise
        extras = extra.split(",")
        missing = None if is_own else extra_of(name)
        hint = install_hint(*extras, *([missing] if missing and missing not in extras else []))
        raise StoppedError(missing_module_text(name), hint=hint) from error
