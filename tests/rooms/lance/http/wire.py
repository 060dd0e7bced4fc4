# SPDX-License-Identifier: Apache-2.0
"""Helpers of the Lance REST tests: short requests, and a table's files on disk."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import lance
import pyarrow as pa

from tests.arrow_rows import arrow
from tests.http.driver import DriverAnswer, DriverNode

ROOT = "/lance/v1"
Json = dict[str, object]


def space(*path: str) -> str:
    """Return the URL of a namespace by its full identifier, or of the root."""
    return f"{ROOT}/namespace/{quote('$'.join(path) or '$', safe='')}"


def table(*path: str) -> str:
    """Return the URL of a table by its full identifier."""
    return f"{ROOT}/table/{quote('$'.join(path), safe='')}"


def make_space(node: DriverNode, *path: str, user: str = "admin", **properties: str) -> Json:
    """Create a namespace."""
    return node.done("POST", f"{space(*path)}/create", {"properties": properties}, user=user)


def declare(node: DriverNode, *path: str, user: str = "admin", **more: object) -> Json:
    """Create a table without data."""
    return node.done("POST", f"{table(*path)}/declare", more, user=user)


def lay(node: DriverNode, name: str, *, catalog: str = "lance") -> str:
    """Write files of a table without valid content into a catalog's warehouse. Returns the location."""
    place = node.data / "warehouse" / catalog / name / "_versions"
    place.mkdir(parents=True)
    (place / "18446744073709551614.manifest").write_bytes(b"not read")
    return f"file://{place.parent}"


def lay_rows(node: DriverNode, name: str, *, catalog: str = "lance") -> str:
    """Write a table of three versions, the first with the tag `old`, and a branch `dev` of the last. Returns the
    location.
    """
    place = node.data / "warehouse" / catalog / name
    for mode in ("create", "append", "append"):
        dataset = lance.write_dataset(pa.table({"id": [1, 2]}), str(place), mode=mode)
    dataset.tags.create("old", 1)
    dataset.create_branch("dev")
    return f"file://{place}"


def stage(location: object, version: int, *, text: bytes = b"not read", branch: str = "", mark: str = "s") -> str:
    """Stage a file with the name of a version's manifest, as a writer does before its commit. Returns the staged
    name.
    """
    directory = Path(str(location).removeprefix("file://"), *(("tree", branch) if branch else ()), "_versions")
    directory.mkdir(parents=True, exist_ok=True)
    name = f"{manifest(version)}-{mark}"
    (directory / name).write_bytes(text + b"LANC")
    return f"{str(directory).lstrip('/')}/{name}"


def manifest(version: int) -> str:
    """Return the name of a version's manifest."""
    return f"{2**64 - 1 - version:020d}.manifest"


def commit(
    node: DriverNode,
    *path: str,
    location: object,
    version: int,
    text: bytes = b"not read",
    branch: str = "",
    mark: str = "s",
) -> DriverAnswer:
    """Stage a version and commit it."""
    staged = stage(location, version, text=text, branch=branch, mark=mark)
    body: Json = {"version": version, "manifest_path": staged}
    return node.post(f"{table(*path)}/version/create", {**body, "branch": branch} if branch else body)


def failure_of(answer: DriverAnswer) -> tuple[int, object]:
    """Return status and code of a failure. Its body must have Lance's error format."""
    body = answer.json()
    assert set(body) == {"error", "code", "detail", "instance"}
    assert isinstance(body["error"], str)
    assert answer.headers["content-type"] == "application/json"
    return answer.status, body["code"]


def fill(node: DriverNode, *path: str, user: str = "admin", mode: str = "create", rows: pa.Table | None = None) -> Json:
    """Create a table with rows."""
    return node.done("POST", f"{table(*path)}/create?mode={mode}", arrow(rows), user=user)


def rows_of(answer: DriverAnswer) -> list[Json]:
    """Return the rows of an answer that is an Arrow file."""
    assert answer.status == 200, answer
    assert answer.headers["content-type"] == "application/vnd.apache.arrow.file"
    rows: list[Json] = pa.ipc.open_file(answer.body).read_all().to_pylist()
    return rows


def names(answer: DriverAnswer) -> object:
    """Return the names of a list of any kind."""
    (entries,) = [value for value in answer.json().values() if isinstance(value, list)]
    return entries
