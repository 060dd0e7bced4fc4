# SPDX-License-Identifier: Apache-2.0
"""Reads local files whose location a caller chose, and follows symbolic links only within the roots.

Must not know the content of files. A link that leads out of the roots is treated as a missing file, whether its target
exists or not, so that a caller cannot probe for other files on the machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

from limnos.files import file_errors
from limnos.files.allowed_storage import AllowedStorage
from limnos.files.local import real_path
from limnos.files.locations import is_local, is_within, normalise
from limnos.files.stores import LOCAL_FILES
from limnos.model.errors import BadRequest, MissingFile


class ReadFile(NamedTuple):
    """The content of a file, and whether its path may contain symbolic links."""

    data: bytes
    has_links: bool = True


class LocalRoots:
    """The roots below which a reader may read, and the server's own directories, with links resolved once.

    Methods block.
    """

    def __init__(self, roots: Sequence[str], allowed: AllowedStorage) -> None:
        self._named = roots
        self._allowed = allowed

    @cached_property
    def _roots(self) -> list[str]:
        return _real(self._named)

    @cached_property
    def _own(self) -> list[str]:
        return _real(self._allowed.own_directories)

    @cached_property
    def _open(self) -> list[str]:
        return _real(self._allowed.open_within)

    def covers(self, result: str) -> bool:
        """Return whether a resolved location is within a root and outside the server's own directories."""
        if not is_within(result, self._roots):
            return False
        return not is_within(result, self._own) or is_within(result, self._open)

    def resolve(self, location: str) -> str:
        """Return the real path of a file that is within the roots after links are resolved.

        Raises MissingFile otherwise.
        """
        result = real_path(location)
        if not self.covers(result):
            error = file_errors.missing_error(location)
            error.context["leads_to"] = result
            raise error
        return result

    def read(self, location: str, *, bytes_max: int | None = None) -> bytes:
        """Read a whole file that is within the roots after links are resolved.

        Raises MissingFile if there is none, TooLarge if it is longer than `bytes_max`.
        """
        return self.read_resolved(location, bytes_max=bytes_max).data

    def read_resolved(self, location: str, *, bytes_max: int | None = None) -> ReadFile:
        """Read a whole file as `read` does. Returns also whether links are on its path."""
        result = self.resolve(location)
        if result == normalise(location):
            return ReadFile(LOCAL_FILES.read(location, bytes_max=bytes_max), has_links=False)
        try:
            # The resolved path, because the links may have changed since the check.
            return ReadFile(LOCAL_FILES.read(result, bytes_max=bytes_max))
        except MissingFile:
            raise file_errors.missing_error(location) from None


def read_within(location: str, roots: Sequence[str], allowed: AllowedStorage, *, bytes_max: int | None = None) -> bytes:
    """Read a whole local file that is within the roots after links are resolved.

    Raises MissingFile if there is none, TooLarge if it is longer than `bytes_max`.
    """
    return LocalRoots(roots, allowed).read(location, bytes_max=bytes_max)


def resolve_within(location: str, roots: Sequence[str], *, allowed: AllowedStorage) -> str:
    """Return the real path of a local file that is within the roots after links are resolved.

    Raises MissingFile otherwise.
    """
    return LocalRoots(roots, allowed).resolve(location)


def leads_within(location: str, roots: Sequence[str], *, allowed: AllowedStorage) -> bool:
    """Return whether a local location is within the roots after links are resolved."""
    return LocalRoots(roots, allowed).covers(real_path(location))


def refuse_alias(location: str, roots: Sequence[str]) -> None:
    """Raise BadRequest if a symbolic link below the roots makes a local location an alias of another location within
    them.

    The register compares locations by name, so a location must have only one name. Links on the path to a root, and
    links that lead out of all roots, are not refused here.
    """
    led = real_path(location)
    local = [root for root in roots if is_local(root)]
    for root in local:
        if (
            is_within(location, [root])
            and led == f"{real_path(root)}{normalise(location).removeprefix(normalise(root))}"
        ):
            return
    if is_within(led, _real(local)):
        raise BadRequest(f"Location {location} is a symbolic link to another location: name that location")


def _real(roots: Iterable[str]) -> list[str]:
    return [real_path(root) for root in roots if is_local(root)]
