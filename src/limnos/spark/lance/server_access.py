# SPDX-License-Identifier: Apache-2.0
"""A session's access to Lance tables: the server and the credential; and the options of a read or write.

A source carries its server and credential to Spark's planning processes and to executors, as Spark's catalogs do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec

from limnos.client import Client, NotFoundError
from limnos.model.errors import BadRequest
from limnos.names import display

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lance_namespace import LanceNamespace

    from limnos.client.values import LanceTable, Parts

SOURCE: Final = "limnos.lance"
"""The source's name for Spark's `format`."""
KNOWN: Final = frozenset({"path", "columns", "version", "tag", "vectors"})
"""Options of the source. Spark passes their names in lower case."""
OF_RUNS: Final = frozenset({"staged", "manifest", "fragments", "addresses"})
"""Options by which a run of a pipeline reads a version that is not committed, some fragments, or addresses of rows."""
TIMEOUT_S: Final = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAccess:
    """A server's URL, the metalake, and the caller's credential (token or user name)."""

    uri: str
    metalake: str
    token: str | None = field(default=None, repr=False)
    user: str | None = None
    ca_file: str | None = None

    def client(self) -> Client:
        """Open a client with a long timeout: the server may have to start a worker process on a machine with a busy
        Spark.
        """
        return Client(
            self.uri,
            token=self.token,
            user=self.user,
            metalake=self.metalake,
            timeout_s=TIMEOUT_S,
            ca_file=self.ca_file,
        )

    def namespace(self) -> LanceNamespace:
        """Create Lance's REST namespace client, by which Lance's library commits to tables whose versions the server
        manages.
        """
        with self.client() as client:
            return client.lance.namespace()


@dataclass(frozen=True, slots=True, kw_only=True)
class LanceOptions:
    """The options of a read or write: the table's path, columns, the version or tag to read, and the sizes of vector
    columns.
    """

    path: Parts
    columns: tuple[str, ...] | None = None
    version: int | None = None
    tag: str | None = None
    staged: int | None = None
    """The number of a version that is not committed, and the path of its manifest in the store. Runs of pipelines read
    such versions; users do not.
    """
    manifest: str | None = None
    fragments: frozenset[int] | None = None
    """The numbers of the fragments to read; None for all."""
    addresses: bool = False
    """Whether the rows have their addresses."""
    vectors: tuple[tuple[str, int], ...] = ()

    def load(self, client: Client) -> LanceTable:
        """Load the table's location, and its latest or requested version, from the server."""
        return client.lance.load(self.path, version=self.version, tag=self.tag)

    def find(self, client: Client) -> LanceTable | None:
        """Load the table; None if it does not exist."""
        try:
            return self.load(client)
        except NotFoundError:
            return None

    @property
    def name(self) -> str:
        """The table's path as text, for messages."""
        return display.render(self.path)


def lance_options_of(options: Mapping[str, str]) -> LanceOptions:
    """Parse the options of a data source. Raises BadRequest, which names the invalid option."""
    arguments = {key.lower(): value for key, value in options.items()}
    unknown = sorted(set(arguments) - KNOWN - OF_RUNS)
    if unknown:
        raise BadRequest(f"There is no option {unknown[0]}: the options are {', '.join(sorted(KNOWN - {'path'}))}")
    path = display.parse(arguments.get("path", "")) if arguments.get("path") else ()
    if len(path) < 2:
        raise BadRequest("Name a table with its catalog, as load('lance.ml.text.docs')")
    columns = arguments.get("columns")
    return LanceOptions(
        path=path,
        columns=None if columns is None else _names(columns),
        version=_number(arguments, "version"),
        tag=arguments.get("tag"),
        staged=_number(arguments, "staged"),
        manifest=arguments.get("manifest"),
        fragments=_fragments(arguments.get("fragments")),
        addresses="addresses" in arguments,
        vectors=_vectors(arguments.get("vectors", "")),
    )


def _number(arguments: Mapping[str, str], name: str) -> int | None:
    text = arguments.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()):
        raise BadRequest(f"The option {name} must be a number, not {text}")
    return int(text)


def _fragments(text: str | None) -> frozenset[int] | None:
    if text is None:
        return None
    if not all(each.isascii() and each.isdigit() for each in text.split(",")):
        raise BadRequest("The option fragments must be a list of numbers")
    return frozenset(map(int, text.split(",")))


def _names(text: str) -> tuple[str, ...]:
    """Parse a comma-separated list of names, or a JSON list for names that contain commas. Raises BadRequest."""
    if not text.startswith("["):
        return tuple(each.strip() for each in text.split(",") if each.strip())
    try:
        return msgspec.json.decode(text, type=tuple[str, ...])
    except msgspec.DecodeError:
        raise BadRequest(f"The option columns is not a list of names: {text}") from None


def _vectors(text: str) -> tuple[tuple[str, int], ...]:
    """Parse the option with the sizes of vector columns: `vector=256,other=8`. Raises BadRequest."""
    results = []
    for each in filter(None, (part.strip() for part in text.split(","))):
        name, _, size = each.rpartition("=")
        if not name or not size.isdigit() or not int(size):
            raise BadRequest(
                "The option vectors must give the dimension of a vector column, such as vectors='embedding=256', not"
                f" {each}"
            )
        results.append((name.strip(), int(size)))
    return tuple(results)
