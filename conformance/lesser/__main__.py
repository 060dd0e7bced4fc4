# SPDX-License-Identifier: Apache-2.0
"""`conformance/run lesser [--only TEXT] [TESTS…]`: every use of an action requires less, one at a time. Which tests
notice?

Each use of `Action.X`, and each call of `kind_action` or `actions_named`, in `limnos.services`, `limnos.http` and
`limnos.rooms` is lowered to an action of the same kind that a weaker right allows. Tests run as usual; each request to
an in-process node is repeated with a lowered use that changes a decision in it, without committing anything. A use is
noticed if the answer to the repeated request differs. If a second use refuses in its place, both are lowered. A use
that no request notices survives, unless `accepted_uses.toml` gives a reason; then the exit code is 1. Actions for
service admins have no lesser one.
"""

from __future__ import annotations

import argparse
import inspect
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from conformance.lesser.accepted_uses import read_judgements
from conformance.lesser.early_decisions import DEEP, SHALLOW, admits_more
from conformance.lesser.recording import Recorder
from conformance.lesser.sites import Site, install
from limnos.access.actions import Action

if TYPE_CHECKING:
    from conformance.lesser.replays import Replays

HERE: Final = Path(__file__).resolve().parents[2]
FIRST: Final = tuple(
    f"tests/{each}"
    for each in (
        "http/admin/test_refusals.py",
        "rooms/gravitino/http/test_refusals.py",
        "rooms/gravitino/http/test_leaf_refusals.py",
        "http/iceberg/test_refusals.py",
        "rooms/lance/http/test_refusals.py",
        "rooms/sqlpp/http/test_refusals.py",
        "rooms/gravitino/http/test_source_refusals.py",
        "rooms/gravitino/http/test_source_topic_refusals.py",
        "http/iceberg/test_federated_refusals.py",
        "http/test_admission.py",
    )
)
"""The tables of refusals, which notice most uses."""
THEN: Final = tuple(
    f"tests/{each}"
    for each in (
        "services/governance/test_details.py",
        "rooms/maintenance/services/test_expiry.py",
        "rooms/maintenance/services/test_operations.py",
        "rooms/maintenance/http/test_table_operations.py",
        "rooms/maintenance/services/test_builtin_jobs.py",
        "rooms/maintenance/services/rewriting/test_leases.py",
        "rooms/maintenance/services/spans/test_plans.py",
        "services/identity/test_access_holders.py",
        "rooms/gravitino/http/test_policies.py",
        "http/admin/identity/test_access.py",
        "http/admin/identity/test_access_presets.py",
        "rooms/console/http/governance/test_attachments.py",
        "http/admin/activity/test_changes.py",
        "http/admin/identity/test_groups.py",
        "rooms/pipelines/http/test_lineage.py",
        "http/admin/catalog/test_moves.py",
        "http/admin/catalog/test_nesting.py",
        "http/admin/governance/test_protection.py",
        "http/admin/activity/test_reports.py",
        "rooms/exchange/http/test_system_tables.py",
        "http/admin/test_run_rights.py",
        "rooms/pipelines/http/test_runs.py",
        "http/admin/catalog/test_transactions.py",
        "http/admin/catalog/test_joint_transactions.py",
        "http/admin/catalog/test_bulk.py",
        "http/admin/test_publishing.py",
        "http/admin/catalog/test_trash.py",
        "http/admin/activity/test_webhooks.py",
        "rooms/sqlpp/http/test_datasets.py",
        "rooms/sqlpp/http/test_dataverses.py",
        "rooms/sqlpp/http/test_dataset_commits.py",
        "rooms/sqlpp/http/test_objects.py",
        "rooms/gravitino/http/test_catalogs.py",
        "rooms/gravitino/http/test_filesets.py",
        "rooms/gravitino/http/test_schemas.py",
        "rooms/gravitino/http/test_source_topics.py",
        "rooms/gravitino/http/test_source_views.py",
        "rooms/gravitino/http/test_statistics.py",
        "rooms/gravitino/http/test_tables.py",
        "http/iceberg/test_credentials.py",
        "http/iceberg/test_federated.py",
        "http/iceberg/test_definers_rights.py",
        "http/iceberg/test_locations.py",
        "http/iceberg/test_idempotency_keys.py",
        "http/iceberg/test_prefixless.py",
        "http/iceberg/test_register.py",
        "http/iceberg/test_restrictions.py",
        "http/iceberg/test_snapshot_pins.py",
        "http/iceberg/test_transactions.py",
        "rooms/lance/http/test_namespaces.py",
        "rooms/lance/http/test_references.py",
        "rooms/lance/http/test_rows.py",
        "rooms/lance/http/test_directory_catalogs.py",
        "rooms/lance/http/test_tables.py",
        "rooms/lance/http/test_versions.py",
        "http/test_request_audit.py",
        "http/test_browsing.py",
        "rooms/console/http/access/test_members.py",
        "rooms/console/http/tree_changes/test_renames.py",
        "rooms/console/http/tree_changes/test_creations.py",
        "rooms/console/http/external/test_objects.py",
        "rooms/gravitino/http/test_owners.py",
        "rooms/gravitino/http/test_permissions.py",
        "http/iceberg/test_restricted_names.py",
        "http/iceberg/test_restricted_principals.py",
        "rooms/sqlpp/http/test_row_rights.py",
        "rooms/console/http/access/test_people.py",
        "rooms/console/http/access/test_requests.py",
        "rooms/pipelines/services/test_schedules.py",
        "http/test_rooms.py",
        "rooms/console/http/test_lance_tables.py",
        "rooms/console/http/table_parts/test_preview.py",
        "rooms/maintenance/http/test_maintenance.py",
    )
)
"""Tests that reach the remaining uses."""
EACH_MAX: Final = 3
"""Maximum number of cases of a parametrized test; tables of refusals run completely."""
ABOUT_RIGHTS: Final = ("403", "orbidden", "efus", "user=", "who", "grant", "may")
"""A test whose text has none of these makes no access decisions."""


class SelectionPlugin:
    """A pytest plugin that deselects tests without access decisions."""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep tables of refusals, and a few cases of each test that may make access decisions."""
        cases: Counter[str] = Counter()
        selected_items = []
        for item in items:
            name = item.nodeid.partition("[")[0]
            cases[name] += 1
            text = inspect.getsource(item.function) if isinstance(item, pytest.Function) else ""
            if "refusals" in name or (cases[name] <= EACH_MAX and any(word in text for word in ABOUT_RIGHTS)):
                selected_items.append(item)
        items[:] = selected_items


def main(arguments: list[str]) -> int:
    """Run tests, lower uses, and print the outcome of each; returns 1 if one survives."""
    parser = argparse.ArgumentParser(prog="conformance/run lesser", description=__doc__)
    parser.add_argument("--only", default="", help="uses whose line here holds this text")
    parser.add_argument("tests", nargs="*", help="files of tests; those that come by most uses else")
    parsed_arguments = parser.parse_args(arguments)
    os.chdir(HERE)
    planter = install(HERE / "src")
    recorder = Recorder(planter)
    recorder.record_decisions()
    from conformance.lesser.replays import Replays  # after the hook

    replays = Replays(planter, recorder, {each.number for each in planter.found if parsed_arguments.only in each.key})
    replays.install()
    began = time.monotonic()
    options = ["-q", "-p", "no:xdist", "-p", "no:cacheprovider"]
    try:
        pytest.main([*options, *(parsed_arguments.tests or (*FIRST, *THEN))], plugins=[replays, SelectionPlugin()])
    finally:  # also if the run is interrupted
        print(f"tests took {time.monotonic() - began:.0f} s")
        code = report(replays)
    return code


def report(replays: Replays) -> int:
    """Print the outcome of each use; returns the exit code."""
    judgements = read_judgements(replays.planter.found)
    counts: Counter[str] = Counter()
    for site in replays.planter.found:
        if site.number not in replays.wanted:
            continue
        word, details = outcome(replays, site)
        if word in ("SURVIVED", "NOT REACHED") and site.key in judgements:
            word, details = "open" if judgements[site.key].is_open else "accepted", judgements[site.key].reason
        counts[word] += 1
        print(f"{word:11} {site.key} (line {site.line}) -> {site.lesser}: {details}")
    print(f"{sum(counts.values())} uses:", ", ".join(f"{count} {word}" for word, count in sorted(counts.items())))
    return 1 if counts["SURVIVED"] or counts["NOT REACHED"] else 0


def outcome(replays: Replays, site: Site) -> tuple[str, str]:
    """Return the outcome of a lowered use: a word and its details."""
    number = site.number
    if site.asks:
        lowered = [site.lesser if each == site.action else each for each in site.asks]
        is_deep = site.path.split("/")[2] in ("iceberg", "lance", "asterix")
        more = admits_more([*map(Action, site.asks)], [*map(Action, lowered)], DEEP if is_deep else SHALLOW)
        if more is None:
            return "same", "no caller has a long body read who has none now"
    if (replay := replays.noticed.get(number)) is not None:
        return "noticed", f"{replay.answers} in {replay.test}, {replay.request}"
    if (replay := replays.again.get(number)) is not None:
        others = ", ".join(replays.planter.found[each].key for each in replay.again)
        return "asked twice", f"{replay.answers} with {others} lowered, too, in {replay.test}"
    if number in replays.reached:
        return (
            "SURVIVED",
            f"{replays.tries.get(number, 0)} requests are answered alike; reached by {replays.reached[number]}",
        )
    return "NOT REACHED", "no test comes by"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
