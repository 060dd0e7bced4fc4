"""Reading a local file that a caller names: symbolic links are followed only as far as they stay within the roots.

May import `model` and this room. A link that leads out is answered as if no file were there, whether one is or not: who may
name files below a warehouse must not learn what lies elsewhere on the machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limnos.files import file_errors
from limnos.files.local import real_path
from limnos.files.locations import is_local, is_within, normalise
from limnos.files.stores import LOCAL_FILES
from limnos.model.errors import BadRequest, MissingFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from limnos.files.allowed_storage import AllowedStorage


def read_within(location: str, roots: Sequence[str], allowed: AllowedStorage, *, bytes_max: int | None = None) -> bytes:
    """Read a whole local file that lies within the roots also when links are followed. Raises MissingFile, TooLarge."""
    found = real_path(location)
    if not _is_open(found, roots, allowed):
        error = file_errors.missing_error(location)
        error.context["leads_to"] = found
        raise error
    if found == normalise(location):
        return LOCAL_FILES.read(location, bytes_max=bytes_max)
    try:
        return LOCAL_FILES.read(found, bytes_max=bytes_max)  # not by the links again: they may lead elsewhere by now
    except MissingFile:
        raise file_errors.missing_error(location) from None


def leads_within(location: str, roots: Sequence[str], *, allowed: AllowedStorage) -> bool:
    """Say whether a local place lies within the roots also when links are followed."""
    return _is_open(real_path(location), roots, allowed)


def refuse_alias(location: str, roots: Sequence[str]) -> None:
    """Raise BadRequest when a link below the roots makes a local location a second name of a place within them.

    Places are compared by their names, so nobody may use a place by two of them. Links on the way to a root, and those that lead
    out of all roots, are not refused here.
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
        raise BadRequest(f"Location {location} leads to another place by a symbolic link: name that place itself")


def _is_open(found: str, roots: Sequence[str], allowed: AllowedStorage) -> bool:
    """Say whether a place without links is in a root, and not in the server's own directories."""
    if not is_within(found, _real(roots)):
        return False
    return not is_within(found, _real(allowed.kept)) or is_within(found, _real(allowed.open_within))


def _real(roots: Iterable[str]) -> list[str]:
    return [real_path(root) for root in roots if is_local(root)]
