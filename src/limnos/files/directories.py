# SPDX-License-Identifier: Apache-2.0
"""Deletes a directory with its content.

Must not know the content of files.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping

from limnos.files.local import path_of
from limnos.files.locations import is_local
from limnos.files.stores import store_for


def delete_directory(location: str, properties: Mapping[str, str]) -> None:
    """Delete a directory and all files below it. No-op if it does not exist.

    Raises the errors of `store_for`, and for object stores StorageFailed or ServiceUnavailable. In a local directory,
    files that cannot be deleted are left without an error.
    """
    if is_local(location):
        shutil.rmtree(path_of(location), ignore_errors=True)
        return
    store = store_for(location, properties)
    for file in store.below(location):
        store.delete(file)
