# SPDX-License-Identifier: Apache-2.0
"""A user of Gravitino has a table maintained, step by step; run by an interpreter that has the official client.

Usage: gravitino_maintenance_script.py URI METALAKE CATALOG TABLE, where TABLE is a path such as raw.trips. The client
runs the job. It has no methods for policies, so these requests are those of Gravitino's web pages, as its dialogs build
them. Prints one JSON object. Imports nothing of Limnos, because the released client pins its own libraries.
"""

from __future__ import annotations

import json
import sys
import time
from urllib.parse import quote
from urllib.request import Request, urlopen

from gravitino import GravitinoClient
from gravitino.auth.basic_auth_provider import BasicAuthProvider

URI, LAKE, CATALOG, TABLE = sys.argv[1:]
TEMPLATE = "builtin-iceberg-rewrite-data-files"


def ask(method: str, path: str, body: object = None) -> dict:
    """Send a request of a web page as the administrator. Returns the answer."""
    sent = Request(
        f"{URI}/api/metalakes/{quote(LAKE)}/{path}", None if body is None else json.dumps(body).encode(), method=method
    )
    sent.add_header("Accept", "application/vnd.gravitino.v1+json")
    sent.add_header("Authorization", "Basic YWRtaW46eA==")
    if body is not None:
        sent.add_header("Content-Type", "application/json")
    with urlopen(sent, timeout=60) as answer:
        return json.loads(answer.read() or b"{}")


def policies_page() -> dict[str, object]:
    """The requests of the policies page: create, list, load, edit, disable, enable and delete a custom policy."""
    content = {"customRules": {"keep": "7"}, "supportedObjectTypes": ["catalog", "table"], "properties": {"k": "v"}}
    policy = {"name": "ui", "comment": "c", "enabled": True, "policyType": "custom", "content": content}
    seen: dict[str, object] = {"created": ask("POST", "policies", policy)["policy"]["name"]}
    seen["listed"] = [each["name"] for each in ask("GET", "policies?details=true")["policies"]]
    loaded = ask("GET", "policies/ui")["policy"]
    seen["loaded"] = [loaded["content"]["customRules"], loaded["content"]["properties"], loaded["enabled"]]
    changed = {**content, "customRules": {"keep": "8"}}
    updates = [
        {"@type": "rename", "newName": "ui2"},
        {"@type": "updateComment", "newComment": "d"},
        {"@type": "updateContent", "policyType": "custom", "newContent": changed},
    ]
    edited = ask("PUT", "policies/ui", {"updates": updates})["policy"]
    seen["edited"] = [edited["name"], edited["comment"], edited["content"]["customRules"]]
    ask("PATCH", "policies/ui2", {"enable": False})
    seen["disabled"] = ask("GET", "policies/ui2")["policy"]["enabled"]
    ask("PATCH", "policies/ui2", {"enable": True})
    seen["enabled"] = ask("GET", "policies/ui2")["policy"]["enabled"]
    seen["deleted"] = ask("DELETE", "policies/ui2")["dropped"]
    return seen


def objects_page() -> dict[str, object]:
    """The requests of the pages of a catalog, a schema and a table: attach a compaction policy, show it where it is
    inherited.
    """
    policy = {
        "name": "compaction",
        "comment": "",
        "enabled": True,
        "policyType": "system_iceberg_compaction",
        "content": {},
    }
    ask("POST", "policies", policy)
    attached = ask("POST", f"objects/catalog/{CATALOG}/policies", {"policiesToAdd": ["compaction"]})
    schema = TABLE.rpartition(".")[0]
    objects = ask("GET", "policies/compaction/objects")["metadataObjects"]
    return {
        "attached": attached["names"],
        "of_catalog": policies_of("catalog", CATALOG),
        "of_schema": policies_of("schema", f"{CATALOG}.{schema}"),
        "of_table": policies_of("table", f"{CATALOG}.{TABLE}"),
        "objects": [[each["fullName"], each["type"]] for each in objects],
    }


def policies_of(kind: str, path: str) -> list[list[object]]:
    """Return the policies of an object's page, with whether they are inherited."""
    policies = ask("GET", f"objects/{kind}/{path}/policies?details=true")["policies"]
    return [[each["name"], each["policyType"], each["inherited"]] for each in policies]


def job() -> dict[str, object]:
    """Run the built-in job with the client and wait for its end."""
    lake = GravitinoClient(uri=URI, metalake_name=LAKE, auth_data_provider=BasicAuthProvider("admin", "x"))
    handle = lake.run_job(TEMPLATE, {"catalog_name": CATALOG, "table_identifier": TABLE})
    began = handle.job_status().value
    until = time.monotonic() + 400
    status = began
    while status in ("queued", "started") and time.monotonic() < until:
        time.sleep(0.5)
        status = lake.get_job(handle.job_id()).job_status().value
    listed = [each.job_id() for each in lake.list_jobs(TEMPLATE)]
    return {
        "began": began,
        "ended": status,
        "template": handle.job_template_name(),
        "listed": handle.job_id() in listed,
    }


report = {"policies": policies_page(), "objects": objects_page(), "job": job()}
detached = ask("POST", f"objects/catalog/{CATALOG}/policies", {"policiesToRemove": ["compaction"]})
print(json.dumps({**report, "detached": detached["names"]}))
