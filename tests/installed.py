# SPDX-License-Identifier: Apache-2.0
"""The rooms of this installation: tests of the kernel leave out what belongs to a room whose folder was deleted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

from _pytest.outcomes import OutcomeException

from limnos.manifests.installed import installed_rooms
from limnos.manifests.manifest import load

if TYPE_CHECKING:
    from limnos.services.request.node_services import NodeServices

ROOT = Path(__file__).parents[1]
_PACKAGE = re.compile(r"^(?:from|import) limnos\.(\w+)", re.MULTILINE)
_IMPORT = re.compile(r"^(?:from|import) (?:limnos|tests)\.rooms\.(\w+)", re.MULTILINE)
_HELPERS = re.compile(
    r"^(?:from|import) ((?:tests|scripts|examples|limnos\.rooms)[\w.]*)(?: import (?:\(([^)]+)|(.+)))?", re.MULTILINE
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
PAGES = {"console": "/console"}
"""Where the paths of a protocol without an OpenAPI document begin."""


class MissingRoom(OutcomeException):
    """A test needs a room that is not installed, so it is left out. No handler of errors catches it."""


def has_room(name: str) -> bool:
    """Return whether a room is installed."""
    return any(each.name == name for each in installed_rooms().manifests)


@cache
def lacks_room(module: Path) -> bool:
    """Return whether a module imports from a room that is not installed, or from a package that such a room has, itself
    or by helpers and modules of other rooms that it imports.
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
    """Yield the modules of tests, scripts, examples and rooms that a source text imports at its top."""
    for package, several, some in _HELPERS.findall(source):
        folder = ROOT.joinpath("src" if package.startswith("limnos.") else "", *package.split("."))
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


@cache
def _absent_addresses() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return the operations that no installed room serves, each as a method and a pattern of its paths."""
    addresses = [
        tuple(route.split(" ", 1)) for file in (ROOT / "openapi").glob("*.json") for route in absent_routes(file.stem)
    ]
    absent = [(method, re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path)))) for method, path in addresses]
    return (*absent, *(("", re.compile(f"{path}(/.*)?")) for name, path in PAGES.items() if not has_room(name)))


def read_absent_addresses() -> None:
    """Read which operations no installed room serves, which takes a second once per process. A client that another
    process watches reads them before it begins.
    """
    _absent_addresses()


def require_address(method: str, path: str) -> None:
    """Leave out the running test if an operation belongs to a room that is not installed. Raises MissingRoom."""
    method = "GET" if method == "HEAD" else method
    for absent, pattern in _absent_addresses():
        if absent in {"", method} and pattern.fullmatch(path):
            raise MissingRoom(f"{method} {path} belongs to a room that is not installed")


@contextmanager
def watched_clients() -> Iterator[None]:
    """Leave out a test whose client sends a request to a room that is not installed, for servers in other processes."""
    import httpx2

    send = httpx2.Client.request

    def watched(client: httpx2.Client, method: str, url: str, **options: Any) -> httpx2.Response:  # noqa: ANN401
        answer = send(client, method, url, **options)
        if answer.status_code in {404, 405}:
            require_address(method, answer.request.url.path)
        return answer

    with mock.patch.object(httpx2.Client, "request", watched):
        yield


def is_absent_command(words: Sequence[str]) -> bool:
    """Return whether a command line that a text names belongs to a room that is not installed."""
    from limnos.cli.signatures import is_installed

    return not all(map(has_room, ALL_ROOMS)) and not is_installed(words)


def expect_no_other_node(services: NodeServices) -> None:
    """Let the cancellation of a statement not wait for one that began on another node a moment ago."""
    requests = room_part("limnos.rooms.sqlpp.services.requests.running_requests:REQUESTS")
    if requests is not None:
        requests.of(services).reach_s = 0.0
