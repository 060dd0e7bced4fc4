# SPDX-License-Identifier: Apache-2.0
"""The rooms of this installation: tests of the kernel leave out what belongs to a room whose folder was deleted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from limnos.manifests.installed import installed_rooms
from limnos.manifests.manifest import load

if TYPE_CHECKING:
    from limnos.services.request.node_services import NodeServices

ROOT = Path(__file__).parents[1]
_PACKAGE = re.compile(r"^(?:from|import) limnos\.(\w+)", re.MULTILINE)
_IMPORT = re.compile(r"^(?:from|import) (?:limnos|tests)\.rooms\.(\w+)", re.MULTILINE)
_HELPERS = re.compile(
    r"^(?:from|import) ((?:tests|scripts|examples)[\w.]*)(?: import (?:\(([^)]+)|(.+)))?", re.MULTILINE
)
_REFERENCE = re.compile(r"limnos\.rooms\.(\w+)")


ALL_ROOMS = (
    "connectors",
    "console",
    "exchange",
    "gravitino",
    "jobs",
    "lance",
    "maintenance",
    "pipelines",
    "search",
    "sqlpp",
)
"""The rooms of this repository: the mark of tests about texts that speak of all of them."""


def has_room(name: str) -> bool:
    """Return whether a room is installed."""
    return any(each.name == name for each in installed_rooms().manifests)


@cache
def lacks_room(module: Path) -> bool:
    """Return whether a module imports from a room that is not installed, or from a package that such a room has, itself
    or by helpers that it imports.
    """
    source = module.read_text(encoding="utf-8")
    if not all(map(has_room, _IMPORT.findall(source))) or not all(map(_has_package, _PACKAGE.findall(source))):
        return True
    return any(map(lacks_room, _helpers_of(source)))


@cache
def _has_package(name: str) -> bool:
    """Return whether the product has a module or a package directly below `limnos`: it may be that of a room."""
    return find_spec(f"limnos.{name}") is not None


def _helpers_of(source: str) -> Iterator[Path]:
    """Yield the modules of tests, scripts and examples that a source text imports at its top."""
    for package, several, some in _HELPERS.findall(source):
        folder = ROOT.joinpath(*package.split("."))
        for file in (folder, *(folder / name for name in re.findall(r"\w+", several or some))):
            if file.with_suffix(".py").is_file():
                yield file.with_suffix(".py")


def room_part(reference: str) -> Any:  # noqa: ANN401 - whatever the room has
    """Return the object `limnos.rooms.ROOM.module:name` of a room; None if the room is not installed."""
    return load(reference) if all(map(has_room, _REFERENCE.findall(reference))) else None


@cache
def absent_operations() -> frozenset[tuple[str, str]]:
    """Return the operations of the committed documents that no installed room serves: protocol and name."""
    from scripts.generate_openapi import documented_protocols

    served = {(each.name, route.operation) for each in documented_protocols() for route in each.router.routes}
    return (
        frozenset(
            (file.stem, operation["operationId"].removesuffix("-default-catalog"))
            for file in (ROOT / "openapi").glob("*.json")
            for methods in json.loads(file.read_text(encoding="utf-8"))["paths"].values()
            for operation in methods.values()
        )
        - served
    )


@cache
def absent_routes(protocol: str) -> frozenset[str]:
    """Return the routes of a committed document that no installed room serves, as `GET /path`."""
    paths = json.loads((ROOT / f"openapi/{protocol}.json").read_text(encoding="utf-8"))["paths"]
    return frozenset(
        f"{method.upper()} {path}"
        for path, methods in paths.items()
        for method, operation in methods.items()
        if (protocol, operation["operationId"].removesuffix("-default-catalog")) in absent_operations()
    )


def expect_no_other_node(services: NodeServices) -> None:
    """Let the cancellation of a statement not wait for one that began on another node a moment ago."""
    requests = room_part("limnos.rooms.sqlpp.services.requests.running_requests:REQUESTS")
    if requests is not None:
        requests.of(services).reach_s = 0.0
