# SPDX-License-Identifier: Apache-2.0
"""Tables with many snapshots for the maintenance tests, and a clock that only the tests advance."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from limnos.rooms.maintenance.services.assessing import AssessmentPosition, AssessmentRound
from tests.http.driver import OWN, DriverNode, grant
from tests.http.iceberg import wire
from tests.http.iceberg.planning import WrittenTable
from tests.iceberg_manifests import data_file, entry, manifest_list

DAY_MS = 86_400_000
FIRST_MS = 1_700_000_000_000
"""The time of the snapshots that the tests' writers make."""
MAINTENANCE = f"{OWN}/metalakes/lake/catalogs/main/maintenance"


class MovedClock:
    """A clock that only the tests advance."""

    offset_ms = 0

    def __init__(self, now_ms: int) -> None:
        self.at_ms = now_ms

    def now_ms(self) -> int:
        """Return the time in milliseconds since 1970."""
        return self.at_ms


def set_clock(node: DriverNode, now_ms: int) -> MovedClock:
    """Set the store's time, on which tokens and leases depend."""
    clock = MovedClock(now_ms)
    node.built.services.store.time = clock  # type: ignore[misc, assignment]
    return clock


class HistoryTable(WrittenTable):
    """A table to which each commit adds a small file in its own manifest."""

    def __init__(self, node: DriverNode, name: str = "t", **more: object) -> None:
        super().__init__(node, name, **more)
        self.manifests: list[dict[str, Any]] = []
        self.elsewhere = 0
        """The number of snapshots that were committed to other branches than `main`."""

    def append(self, count: int = 1, *, size: int = 1_000, **summary: str) -> None:
        """Commit snapshots, and write one more data file for each."""
        for _ in range(count):
            number = self.snapshots + 1
            location = f"{self.location}/data/{number}.parquet"
            wire.local(location).parent.mkdir(parents=True, exist_ok=True)
            wire.local(location).write_bytes(b"x" * min(size, 1_000))
            added = entry(data_file(location, file_size_in_bytes=size))
            self.manifests.append(self.manifest(f"m{number}.avro", [added]))
            self._commit(number, size=size * number, summary=summary)

    def append_at(self, at_ms: int, **summary: str) -> bool:
        """Commit a snapshot with a given time and one more data file. Returns whether the server accepted it."""
        number = self.snapshots + 1
        location = f"{self.location}/data/{number}.parquet"
        wire.local(location).parent.mkdir(parents=True, exist_ok=True)
        wire.local(location).write_bytes(b"x" * number)
        self.manifests.append(self.manifest(f"m{number}.avro", [entry(data_file(location, file_size_in_bytes=number))]))
        place = self.write(f"snap-{number}.avro", manifest_list(self.manifests))
        snapshot_update = wire.snapshot(number, manifest_list=place, parent=self.snapshots or None)
        sequence = number + self.elsewhere
        more = {"timestamp-ms": at_ms, "sequence-number": sequence, "summary": {"operation": "append", **summary}}
        snapshot_update["snapshot"] = {**snapshot_update["snapshot"], **more}  # type: ignore[dict-item]
        answer = wire.commit(self.node, "a", self.name, updates=[snapshot_update, wire.point(number)])
        if answer.status != 200:
            self.manifests.pop()
            return False
        self.snapshots = number
        return True

    def _commit(self, number: int, *, size: int, summary: dict[str, str]) -> None:
        place = self.write(f"snap-{number}.avro", manifest_list(self.manifests))
        snapshot_update = wire.snapshot(number, manifest_list=place, parent=self.snapshots or None)
        totals = {"total-data-files": str(number), "total-files-size": str(size), "total-delete-files": "0"}
        snapshot_update["snapshot"] = {  # type: ignore[dict-item]
            **snapshot_update["snapshot"],
            "summary": {"operation": "append", **totals, **summary},
            "sequence-number": number,  # type: ignore[dict-item]
        }
        answer = wire.commit(self.node, "a", self.name, updates=[snapshot_update, wire.point(number)])
        assert answer.status == 200, answer.body
        self.snapshots = number

    def ids(self) -> list[int]:
        """Return the ids of the table's snapshots."""
        return [each["snapshot-id"] // 100 for each in wire.metadata_of(self.node, "a", self.name)["snapshots"]]  # type: ignore[attr-defined]


def assess(node: DriverNode, at: AssessmentPosition | None = None, *, tables_max: int = 50_000) -> AssessmentPosition:
    """Run a round of the assessment task. Returns the position of the next round."""
    return assess_counted(node, at, tables_max=tables_max)[0]


def assess_counted(
    node: DriverNode, at: AssessmentPosition | None = None, *, tables_max: int = 50_000
) -> tuple[AssessmentPosition, int]:
    """Run a round of the assessment task. Returns the number of assessed tables."""
    round_ = AssessmentRound(node.built.services, tables_max=tables_max)
    position = node.runner.run(round_.run(at or AssessmentPosition()))
    return position, round_.tables


def findings(node: DriverNode, *, user: str = "admin") -> dict[tuple[str, str], dict[str, Any]]:
    """Return the findings that the route lists, by table and kind."""
    answer = node.get(f"{MAINTENANCE}/findings", user=user)
    assert answer.status == 200, answer.body
    return {(each["table"], each["kind"]): each for each in answer.json()["findings"]}


def explained(node: DriverNode, table: str = "a.t", *, user: str = "admin") -> dict[str, Any]:
    """Return the route's explanation of the maintenance of a table."""
    answer = node.get(f"{MAINTENANCE}/table?table={table}", user=user)
    assert answer.status == 200, answer.body
    return answer.json()


def add_policy(
    node: DriverNode, name: str, policy_type: str, content: dict[str, object], *, on: str, kind: str
) -> None:
    """Create a policy and attach it."""
    body = {"name": name, "policyType": policy_type, "enabled": True, "content": content}
    answer = node.post("/api/metalakes/lake/policies", body)
    assert answer.status == 200, answer.body
    attach(node, name, on=on, kind=kind)


def attach(node: DriverNode, *names: str, on: str, kind: str) -> None:
    """Attach policies to an object."""
    address = f"/api/metalakes/lake/objects/{kind}/{on}/policies"
    answer = node.post(address, {"policiesToAdd": list(names), "policiesToRemove": []})
    assert answer.status == 200, answer.body


def robot_token(node: DriverNode, **secret: object) -> tuple[str, int]:
    """Create a service account that may maintain the tables of `main`. Returns a token that its secret yields, and the
    secret's id.
    """
    grant(node, "robot", "use_catalog use_schema select_table modify_table", kind="CATALOG", on="main")
    created_secret = node.done("POST", f"{OWN}/users/robot/secrets", secret)
    fields = {
        "grant_type": "client_credentials",
        "client_id": "robot",
        "client_secret": str(created_secret["client_secret"]),
    }
    opened = node.ask(
        "POST",
        "/iceberg/v1/oauth/tokens",
        urlencode(fields).encode(),
        user=None,
        content_type="application/x-www-form-urlencoded",
    )
    assert opened.status == 200, opened.body
    return str(opened["access_token"]), int(created_secret["id"])


def end_secret(node: DriverNode, secret_id: int) -> None:
    """Revoke a secret of the service account."""
    node.done("DELETE", f"{OWN}/users/robot/secrets/{secret_id}")
