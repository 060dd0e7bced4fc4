# SPDX-License-Identifier: Apache-2.0
"""The protocols: how each creates, requests, renames and drops an object, and what its statuses mean.

May import this package's `world`. Knows no change of rights: those are `changes`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from conformance.acceptance.world import Request, World

if TYPE_CHECKING:
    from collections.abc import Mapping

OWN = "/api/limnos/v1"
GRAVITINO = "/api/metalakes/lake"
ICEBERG = "/iceberg/v1/lake.main"
LANCE = "/lance/v1"
SQLPP = "/query/service"
ALLOWED, REFUSED, MISSING, AWAY = "allowed", "refused", "missing", "unavailable"
COLUMN = {"id": 1, "name": "id", "type": "long", "required": False}


class Face(ABC):
    """One protocol. An object is `name` in the schema `space` of `catalog`."""

    title: ClassVar[str]
    catalog: ClassVar[str] = "main"
    kind: ClassVar[str] = "table"
    privilege: ClassVar[str] = "select_table"
    said: ClassVar[Mapping[int, str]] = {200: ALLOWED, 403: REFUSED, 404: MISSING, 503: AWAY}
    """Meanings of the statuses of its answers."""
    hot_max: ClassVar[int] = 1
    """Maximum statements of a request without changes before it. The matrix's design allows three."""

    def full_name(self, *parts: str) -> str:
        """Return the name of an object in grants and owners."""
        return ".".join((self.catalog, *parts))

    @abstractmethod
    def make_space(self, world: World, space: str) -> None:
        """Create a schema."""

    @abstractmethod
    def make(self, world: World, space: str, name: str) -> None:
        """Create an object."""

    @abstractmethod
    def ask(self, space: str, name: str) -> Request:
        """Request an object."""

    @abstractmethod
    def rename(self, world: World, space: str, *, old: str, new: str) -> None:
        """Rename an object."""

    @abstractmethod
    def drop(self, world: World, space: str, name: str) -> None:
        """Drop an object."""


class Gravitino(Face):
    """Tables of an Iceberg catalog over Gravitino REST."""

    title = "Gravitino"

    @staticmethod
    def _tables(space: str) -> str:
        return f"{GRAVITINO}/catalogs/main/schemas/{space}/tables"

    def make_space(self, world: World, space: str) -> None:
        """Create a schema."""
        world.do("POST", f"{GRAVITINO}/catalogs/main/schemas", {"name": space, "properties": {}})

    def make(self, world: World, space: str, name: str) -> None:
        """Create a table."""
        columns = [{"name": "id", "type": "long", "nullable": True}]
        world.do("POST", self._tables(space), {"name": name, "columns": columns, "properties": {}})

    def ask(self, space: str, name: str) -> Request:
        """Load it."""
        return Request("GET", f"{self._tables(space)}/{name}")

    def rename(self, world: World, space: str, *, old: str, new: str) -> None:
        """Alter it."""
        world.do("PUT", f"{self._tables(space)}/{old}", {"updates": [{"@type": "rename", "newName": new}]})

    def drop(self, world: World, space: str, name: str) -> None:
        """Drop it."""
        world.do("DELETE", f"{self._tables(space)}/{name}")


class Iceberg(Face):
    """Tables over Iceberg REST."""

    title = "Iceberg REST"

    @staticmethod
    def _tables(space: str) -> str:
        return f"{ICEBERG}/namespaces/{space}/tables"

    def make_space(self, world: World, space: str) -> None:
        """Create a namespace."""
        world.do("POST", f"{ICEBERG}/namespaces", {"namespace": [space]})

    def make(self, world: World, space: str, name: str) -> None:
        """Create a table."""
        schema = {"type": "struct", "schema-id": 0, "fields": [COLUMN]}
        world.do("POST", self._tables(space), {"name": name, "schema": schema})

    def ask(self, space: str, name: str) -> Request:
        """Load it."""
        return Request("GET", f"{self._tables(space)}/{name}")

    def rename(self, world: World, space: str, *, old: str, new: str) -> None:
        """Rename it."""
        source, target = ({"namespace": [space], "name": name} for name in (old, new))
        world.do("POST", f"{ICEBERG}/tables/rename", {"source": source, "destination": target})

    def drop(self, world: World, space: str, name: str) -> None:
        """Drop it."""
        world.do("DELETE", f"{self._tables(space)}/{name}")


class Lance(Face):
    """Declared tables over Lance REST: answers depend on the store only."""

    title = "Lance REST"
    catalog = "lance"

    @staticmethod
    def _table(space: str, name: str) -> str:
        return f"{LANCE}/table/lance%24{space}%24{name}"

    def make_space(self, world: World, space: str) -> None:
        """Create a namespace."""
        world.do("POST", f"{LANCE}/namespace/lance%24{space}/create", {})

    def make(self, world: World, space: str, name: str) -> None:
        """Declare a table."""
        world.do("POST", f"{self._table(space, name)}/declare", {})

    def ask(self, space: str, name: str) -> Request:
        """Describe it."""
        return Request("POST", f"{self._table(space, name)}/describe", {"load_detailed_metadata": False})

    def rename(self, world: World, space: str, *, old: str, new: str) -> None:
        """Rename it."""
        world.do("POST", f"{self._table(space, old)}/rename", {"new_table_name": new})

    def drop(self, world: World, space: str, name: str) -> None:
        """Drop it."""
        world.do("POST", f"{self._table(space, name)}/drop", {})


class Sqlpp(Face):
    """Views over SQL++ that need no engine: a statement reads one."""

    title = "SQL++"
    kind = "view"
    privilege = "select_view"
    said = Face.said | {400: MISSING}
    hot_max = 2

    @staticmethod
    def _say(world: World, statement: str) -> None:
        world.do("POST", SQLPP, {"statement": statement})

    def make_space(self, world: World, space: str) -> None:
        """Create a dataverse."""
        self._say(world, f"create dataverse {space}")

    def make(self, world: World, space: str, name: str) -> None:
        """Create a view."""
        self._say(world, f"create view {space}.{name} as select value 1")

    def ask(self, space: str, name: str) -> Request:
        """Query it."""
        return Request("POST", SQLPP, {"statement": f"select value x from {space}.{name} x"})

    def rename(self, world: World, space: str, *, old: str, new: str) -> None:
        """Move the view by another protocol, because SQL++ cannot rename."""
        body = {"kind": "view", "source": [space, old], "target": [space, new]}
        world.do("POST", f"{OWN}/metalakes/lake/catalogs/main/move", body)

    def drop(self, world: World, space: str, name: str) -> None:
        """Drop it."""
        self._say(world, f"drop view {space}.{name}")


FACES = (Gravitino(), Iceberg(), Lance(), Sqlpp())
