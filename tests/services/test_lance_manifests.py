"""The manifests of a managed table, where two nodes and somebody who writes past them meet at one name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import cast

from limnos.formats.lance_debris import BYPASSED
from limnos.formats.lance_manifests import V2, manifest_name
from limnos.model.errors import AlreadyExists, MissingFile
from limnos.model.lance import LanceVersion
from limnos.services.files import Files
from limnos.services.lance_manifests import Manifests
from limnos.services.places import Place

AT = "file:///t/_versions"
FINAL, STAGED = f"{AT}/{manifest_name(5, V2)}", f"{AT}/staged"
RIGHT, ROGUE = b"right", b"rogue, and longer"
VERSION = LanceVersion("", 5, V2, "staged", len(RIGHT), None, "{}", 0, settled=False)


class Shelf:
    """Files by name; `meanwhile` is what another node does just before one of ours is moved."""

    def __init__(self, held: dict[str, bytes], meanwhile: Callable[[Shelf], None]) -> None:
        self.held = held
        self._meanwhile: Callable[[Shelf], None] | None = meanwhile

    async def link_new(self, source: str, target: str, **_: object) -> None:
        """Give a further name."""
        if source not in self.held:
            raise MissingFile(source)
        if self.held.setdefault(target, self.held[source]) != self.held[source]:
            raise AlreadyExists(target, kind="file")

    async def move(self, source: str, target: str, **_: object) -> None:
        """Let the other node do its part, then move."""
        meanwhile, self._meanwhile = self._meanwhile, None
        if meanwhile is not None:
            meanwhile(self)
        if source in self.held:
            self.held[target] = self.held.pop(source)

    async def read(self, location: str, _properties: object) -> bytes:
        """Read a file."""
        if location not in self.held:
            raise MissingFile(location)
        return self.held[location]

    def exists_now(self, location: str) -> bool:
        """Say whether it is there."""
        return location in self.held


def settled(shelf: Shelf) -> bool:
    """Have the version settled at our node."""

    class Catalog:
        properties: Mapping[str, str] = MappingProxyType({})

    class Here:
        catalog = Catalog
        roots = ("file:///t",)

    manifests = Manifests(cast("Files", shelf), "file:///t", branch="", place=cast("Place", Here))
    return asyncio.run(manifests.settle(VERSION))


def test_what_another_node_put_right_meanwhile_is_not_lost() -> None:
    """It moved the rogue aside, gave the version its name, and dropped what was staged: what is moved then was the version, and comes back."""

    def other(shelf: Shelf) -> None:
        del shelf.held[STAGED]
        shelf.held[FINAL] = RIGHT

    shelf = Shelf({STAGED: RIGHT, FINAL: ROGUE}, other)

    assert settled(shelf)
    assert shelf.held[FINAL] == RIGHT


def test_what_was_never_the_version_does_not_come_back() -> None:
    """Somebody has deleted what was staged, and the rogue stays aside: the version is lost, and that is said."""

    def deleted(shelf: Shelf) -> None:
        del shelf.held[STAGED]

    shelf = Shelf({STAGED: RIGHT, FINAL: ROGUE}, deleted)

    assert not settled(shelf)
    assert FINAL not in shelf.held
    assert [each for each in shelf.held if f"/{BYPASSED}/" in each]


def test_the_name_is_taken_again_and_again() -> None:
    """Each time what has it is moved aside, till the version has it."""

    def again(shelf: Shelf) -> None:
        shelf.held[FINAL] = ROGUE + b"!"

    shelf = Shelf({STAGED: RIGHT, FINAL: ROGUE}, again)

    assert settled(shelf)
    assert shelf.held[FINAL] == RIGHT
