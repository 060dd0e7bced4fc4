# SPDX-License-Identifier: Apache-2.0
"""Calls every public method of the official Python client, as an admin and as ordinary users. Usage: script.py URI;
prints one JSON object.

Run by an interpreter that has the client; imports nothing of Limnos.
"""

from __future__ import annotations

import json
import sys

from access_steps import metalakes, people, refusals, rights
from call_record import CallRecord  # records calls of the client's classes, so it precedes their use
from resources import everything

from gravitino import GravitinoAdminClient, GravitinoClient
from gravitino.auth.basic_auth_provider import BasicAuthProvider

LAKE = "grav_conformance"


def main(uri: str) -> None:
    """Run all steps in order, then print the results."""
    record = CallRecord()
    admin = GravitinoAdminClient(uri=uri, auth_data_provider=BasicAuthProvider("admin", "x"))
    metalakes(record, admin, name=LAKE)
    users = {
        user: GravitinoClient(uri=uri, metalake_name=LAKE, auth_data_provider=BasicAuthProvider(user, "x"))
        for user in people(record, client_of(uri, "admin"))
    }
    rights(users["admin"], "worker")
    for user in ("admin", "worker"):
        everything(record, users[user], user)
    refusals(record, users["outsider"], users["worker"])
    admin.drop_metalake(LAKE, force=True)
    record.see(
        "admin", "close", admin.close, wants="UnknownError"
    )  # the client sends a request of the non-existent method "close"
    sys.stdout.write(json.dumps({"known": record.known, "called": sorted(record.called), "steps": record.steps}))


def client_of(uri: str, user: str) -> GravitinoClient:
    """Return a client of one user; the Basic password is ignored."""
    return GravitinoClient(uri=uri, metalake_name=LAKE, auth_data_provider=BasicAuthProvider(user, "x"))


if __name__ == "__main__":
    main(sys.argv[1])
