# SPDX-License-Identifier: Apache-2.0
"""Transactions over several catalogs for the kill tests: an Iceberg table, a pipeline run and a Lance table."""

from __future__ import annotations

from tests.faults.mutations import Case, has_version, new_pipeline, new_table, properties_of, run_state, stage_versions
from tests.faults.rig import Rig
from tests.nodes.wire import OWN, properties_body

PATH = f"{OWN}/metalakes/lake/transactions"


def joint_transaction(rig: Rig) -> Case:
    """Commit to an Iceberg table and a Lance table of two catalogs, and publish the run that wrote them."""
    tag, (_, run), lance = new_table(rig), new_pipeline(rig), rig.tag()
    (entry,) = stage_versions(rig, lance)
    operations: list[dict[str, object]] = [
        {"do": "commit-table", "catalog": "main", "path": [tag, "t"], **properties_body(mark=tag)},
        {"do": "publish-run", "catalog": "main", "run": run, "attempt": 1},
        {
            "do": "commit-lance-version",
            "catalog": "lance",
            "path": [lance],
            "version": entry["version"],
            "manifest_path": entry["manifest_path"],
        },
    ]

    def is_done() -> bool:
        effects = [
            properties_of(rig, tag, "t").get("mark") == tag,
            run_state(rig, run) == "published",
            has_version(rig, lance),
        ]
        assert effects in ([True] * 3, [False] * 3), f"only a part of the transaction: {effects}"
        return effects[0]

    return Case(method="POST", path=PATH, body={"operations": operations}, is_done=is_done, again=(409,))


MUTATIONS = (joint_transaction,)
