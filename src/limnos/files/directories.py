"""Deleting a directory whole.

May import this room. Knows nothing of what lies in it.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from limnos.files.local import path_of
from limnos.files.locations import is_local
from limnos.files.stores import store_for

if TYPE_CHECKING:
    from collections.abc import Mapping


def delete_directory(location: str, properties: Mapping[str, str]) -> None:
    """Delete a directory with all files below it; that nothing is there is fine. Raises StorageFailed, Unavailable."""
    if is_local(location):
        shutil.rmtree(path_of(location), ignore_errors=True)
        return
    store = store_for(location, properties)
    for file in store.below(location):
        store.delete(file)
