# SPDX-License-Identifier: Apache-2.0
"""The page about the maintenance of a catalog's tables: findings, operations, and the needed rights."""

from __future__ import annotations

from time import monotonic

import msgspec

from limnos.model.permits import upkeep_permit
from limnos.rooms.maintenance.services.assessing import ASSESS_TABLES, AssessmentPosition
from limnos.rooms.maintenance.services.rewriting.leases import EXECUTOR_REQUESTS
from tests.http.driver import API, OWN, DriverNode, grant
from tests.http.iceberg import wire
from tests.rooms.console.http.conftest import commit_flights
from tests.rooms.console.http.visitor import ConsoleVisitor
from tests.rooms.maintenance.console.test_health import FORM

PAGE = "/console/maintenance?metalake=lake&catalog=main"
TAB = "/console/o/table/lake/main/raw/flights?tab=maintenance"


def test_operations_of_all_tables_are_listed(admin: ConsoleVisitor) -> None:
    """The page lists an operation with a link to its table's tab. The console's other pages link to this page."""
    updates = [wire.snapshot(1), wire.point(1)]
    commit_flights(admin.node, *updates)
    admin.post(FORM, {"operation": "expire"})

    page = admin.read(PAGE)

    assert page.faults == []
    assert "admin just now the server executes it within a minute" in page.text
    assert "main.raw.flights Expire snapshots waiting admin" in page.text
    assert "No table that you may maintain needs anything" in page.text
    assert TAB in page.hrefs
    assert "/console/maintenance?metalake=lake" in admin.read("/console/").hrefs


def test_missing_executor_and_orphan_setting_are_reported(admin: ConsoleVisitor) -> None:
    """Without an executor, the page says that rewrites by policies do not run. For Lance tables, it names the setting
    that removes orphan files.
    """
    services = admin.node.built.services
    policies_only, advice = "Rewrites files where a policy says so", "(no executor: run limnos maintenance work)"
    page, lance = (admin.read(path).text for path in (PAGE, PAGE.replace("catalog=main", "catalog=lance")))

    assert f"{policies_only} {advice}" in page
    assert "Removes orphan files no: setting maintenance.orphan_files" in page
    assert "Orphan files removed after 7 d (setting lance.debris_age_s)" in lance
    assert advice not in lance
    EXECUTOR_REQUESTS.of(services)["lake"] = monotonic()
    assert advice not in admin.read(PAGE).text


def test_time_of_the_last_assessment_is_shown(admin: ConsoleVisitor) -> None:
    """After an assessment, the page has its time."""
    store, permit = admin.node.built.services.store, upkeep_permit("test")
    before = admin.read(PAGE).text
    text = msgspec.json.encode(AssessmentPosition(ended_at_ms=store.time.now_ms())).decode()
    admin.node.runner.run(store.submit(permit, lambda tx: tx.tasks.create(ASSESS_TABLES, text)))

    assert "Last assessment" not in before
    assert "Last assessment just now" in admin.read(PAGE).text


def test_unmaintainable_tables_are_not_listed(lake: DriverNode) -> None:
    """A reader sees no operation on a table that they may not maintain, and no hidden catalog."""
    grant(lake, "ana", "use_catalog use_schema select_table", kind="CATALOG", on="main")
    ConsoleVisitor(lake).sign_in().post(FORM, {"operation": "expire"})
    ana = ConsoleVisitor(lake).sign_in("ana")

    assert "flights" not in ana.read(PAGE).text.partition("Due operations")[2]
    assert ana.get("/console/maintenance?metalake=lake&catalog=hidden").status == 404
    assert ana.get(f"{PAGE}&after=x").status == 400
    assert lake.done("GET", f"{OWN}/metalakes/lake/catalogs/main/maintenance/operations")["operations"] != []


def test_inherited_policies_are_marked(admin: ConsoleVisitor) -> None:
    """A policy on a namespace is shown on it, and as inherited by its namespaces and tables."""
    fields = {"metalake": "lake", "name": "tidy", "type": "system_iceberg_compaction", "content": "{}"}
    assert admin.post("/console/policies/create", fields).status == 303
    namespace = admin.read("/console/o/namespace/lake/main/raw?tab=policies")
    body = {"metalake": "lake", "name": "tidy", "kind": "namespace", "path": "main.raw", "change": "attach"}
    assert admin.post("/console/policy/attach", body).status == 303

    assert "No policy that you may see applies here" in namespace.text
    assert ("post", "/console/policy/attach") in namespace.actions
    assert "tidy here enabled" in admin.read("/console/o/namespace/lake/main/raw?tab=policies").text
    assert "tidy above, and inherited" in admin.read("/console/o/namespace/lake/main/raw/nyc?tab=policies").text
    table = admin.read(TAB)
    assert "tidy compaction main.raw inherited enabled" in table.text
    assert "/console/policy/lake/tidy" in table.hrefs


def test_policies_the_reader_may_not_load_are_hidden(admin: ConsoleVisitor) -> None:
    """A reader of a namespace does not see policies that they may not load."""
    admin.node.done("POST", f"{API}/lake/users", {"name": "ana"})
    fields = {"metalake": "lake", "name": "tidy", "type": "system_iceberg_compaction", "content": "{}"}
    admin.post("/console/policies/create", fields)
    body = {"metalake": "lake", "name": "tidy", "kind": "namespace", "path": "main.raw", "change": "attach"}
    admin.post("/console/policy/attach", body)
    grant(admin.node, "eve", "use_catalog use_schema", kind="CATALOG", on="main")
    eve = ConsoleVisitor(admin.node).sign_in("eve")

    assert "tidy" not in eve.read("/console/o/namespace/lake/main/raw?tab=policies").text
    assert eve.post("/console/policy/attach", body).status == 403
