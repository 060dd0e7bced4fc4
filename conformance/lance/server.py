# SPDX-License-Identifier: Apache-2.0
"""A server with access control on, a user with the rights that a story needs, and a user without rights.

May import the demo's server starter, our client and pylance.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lance_namespace import CreateNamespaceRequest

from conformance.lance.stories import home_of
from examples.demo.server import running_server
from lance.namespace import RestNamespace
from limnos.client import Client

DEEPEST = 5
_RIGHTS = ("use_catalog", "use_schema", "create_schema", "create_table", "modify_table", "select_table")


@dataclass(frozen=True, slots=True)
class Lake:
    """The address of the server, and the tokens by user."""

    uri: str
    admin: str
    worker: str
    outsider: str

    @property
    def lance(self) -> str:
        """The address of Lance REST."""
        return f"{self.uri}/lance"


@contextmanager
def served(work: Path, *, log: Path) -> Iterator[Lake]:
    """Serve a new store for the body of a `with`."""
    with running_server(work / "data", log=log) as server:
        yield furnished(server.uri, (work / "data" / "admin.token").read_text().strip())


def furnished(uri: str, admin: str, *, mark: str = "") -> Lake:
    """Create the namespaces of every depth, and two users, one of whom has rights in the catalog and owns only what it
    creates.
    """
    namespace = RestNamespace(**{"uri": f"{uri}/lance", "header.Authorization": f"Bearer {admin}"})
    path = home_of(DEEPEST)
    for depth in range(2, len(path) + 1):
        namespace.create_namespace(CreateNamespaceRequest(id=list(path[:depth]), mode="ExistOk"))
    with Client(uri, token=admin) as client:
        users = [f"{name}{mark}" for name in ("worker", "outsider")]
        for user in users:
            client.users.add(user)
        client.roles.create(f"workers{mark}")
        client.roles.allow(f"workers{mark}", ["create_catalog"], on="lake", kind="metalake")
        client.roles.allow(f"workers{mark}", list(_RIGHTS), on="lance", kind="catalog")
        client.roles.grant_to_user(users[0], [f"workers{mark}"])
        worker, outsider = (client.tokens.create(user=user).token for user in users)
    return Lake(uri, admin, worker, outsider)
