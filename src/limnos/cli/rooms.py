"""Bring in a room that the base install has not the libraries for.

May import the standard library. Must not know what the rooms do.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from limnos.cli.failures import StoppedError
from limnos.cli.hints import of_extra


def room(module: str, *, extra: str) -> ModuleType:
    """Import a module of ours; when a library is missing, say which extra of the package brings it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "limnos":
            raise
        raise StoppedError(f"this needs '{error.name}', which is not installed", hint=of_extra(extra)) from error
