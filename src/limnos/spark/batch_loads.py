# SPDX-License-Identifier: Apache-2.0
"""Loads of many objects in a task by one request, as far as possible.

Must not know what is loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from limnos.client.errors import ClientError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")


def load_batch(load_each: Callable[[Sequence[str]], tuple[T | None, ...]], paths: Sequence[str]) -> dict[str, T]:
    """Load objects by their paths. Those that are missing in the result are to be loaded one by one: all of them if the
    request is refused, as by a server of an earlier version.

    Raises UnavailableError if the server is not reachable.
    """
    if not paths:
        return {}
    try:
        loaded_objects = load_each(paths)
    except ClientError as error:
        if error.status == 0:
            raise
        return {}
    return {path: each for path, each in zip(paths, loaded_objects, strict=True) if each is not None}
