"""Calls every public method of the official Python client, as an admin and as ordinary users. Usage: script.py URI;
prints one JSON object.

Run by an interpreter that has the client; imports nothing of Limnos.
"""

from __future__ import annotations

import json
import sys

from book import Book  # records calls of the client's classes, so it precedes their use
from people import metalakes, people, refusals, rights
from resources import everything

from gravitino import GravitinoAdminClient, GravitinoClient
from gravitino.auth.basic_auth_provider import BasicAuthProvider

LAKE = "grav_conformance"


def main(uri: str) -> None:
    """Run all steps in order, then print the results."""
    book = Book()
    admin = GravitinoAdminClient(uri=uri, auth_data_provider=BasicAuthProvider("admin", "x"))
    metalakes(book, admin, name=LAKE)
    users = {
        user: GravitinoClient(uri=uri, metalake_name=LAKE, auth_data_provider=BasicAuthProvider(user, "x"))
        for user in people(book, client_of(uri, "admin"))
    }
    rights(users["admin"], "worker")
    for user in ("admin", "worker"):
        everything(book, users[user], user)
    refusals(book, users["outsider"], users["worker"])
    admin.drop_metalake(LAKE, force=True)
    book.see(
        "admin", "close", admin.close, wants="UnknownError"
    )  # the client sends a request of the non-existent method "close"
    sys.stdout.write(json.dumps({"known": book.known, "called": sorted(book.called), "steps": book.steps}))


def client_of(uri: str, user: str) -> GravitinoClient:
    """Return a client of one user; the Basic password is ignored."""
    return GravitinoClient(uri=uri, metalake_name=LAKE, auth_data_provider=BasicAuthProvider(user, "x"))


if __name__ == "__main__":
    main(sys.argv[1])
