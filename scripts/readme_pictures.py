# SPDX-License-Identifier: Apache-2.0
"""The pictures of README.md and the guide to the console: `make console-shots ARGS=--readme` writes docs/images.

Starts a server over a new directory with a small shop, and opens its pages in Chromium. Needs Playwright (group `dev`)
and a Chromium.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from scripts.console_shots import LakeServer, iceberg_catalog, launch, lineage_event

PAGES = {
    "console-home": "/console/",
    "console-table": "/console/o/table/lake/main/curated/daily_sales",
    "console-lineage": "/console/lineage/table/lake/main/curated/daily_sales?depth=3",
}
WIDTH, HEIGHT = 1200, 640
COLUMNS = {
    "raw.orders": ("Orders of the web shop, as delivered each night", "order_id", "customer_id", "item_id", "amount"),
    "raw.customers": ("Customers, from the CRM", "customer_id", "name", "email", "country"),
    "raw.items": ("What the shop sells", "item_id", "title", "price"),
    "curated.orders_clean": ("Orders without tests and refunds", "order_id", "customer_id", "item_id", "amount", "day"),
    "curated.daily_sales": ("Sales by day and country", "day", "country", "orders", "amount"),
    "curated.churn_features": ("Features of the churn model", "customer_id", "orders_30d", "amount_30d"),
}
"""The comment and the columns of each table."""
DOCS = {
    "day": "day of the order, in UTC",
    "country": "ISO 3166 code of the customer",
    "orders": "number of orders",
    "amount": "sum in euros, without tax",
    "email": "personal: masked for most readers",
}
TYPES = {
    **dict.fromkeys(("amount", "amount_30d", "price"), "decimal(12, 2)"),
    **dict.fromkeys(("order_id", "customer_id", "item_id", "orders", "orders_30d"), "long"),
    "day": "date",
}
EDGES = (
    ("raw.orders", "curated.orders_clean", "clean"),
    ("raw.items", "curated.orders_clean", "clean"),
    ("curated.orders_clean", "curated.daily_sales", "sales"),
    ("raw.customers", "curated.daily_sales", "sales"),
    ("curated.orders_clean", "curated.churn_features", "features"),
)


def column_field(name: str, *, number: int) -> dict[str, object]:
    """Return a column of Iceberg's schema; the first is required."""
    field: dict[str, object] = {"id": number, "name": name, "required": number == 1, "type": TYPES.get(name, "string")}
    return field | ({"doc": DOCS[name]} if name in DOCS else {})


def fill(server: LakeServer) -> None:
    """Create the shop's tables with comments, rows, rights, a tag and lineage."""
    iceberg, lake = "/iceberg/v1/lake.main", "/api/metalakes/lake"
    for name, comment in (("raw", "As delivered"), ("curated", "Checked and joined")):
        body = {"namespace": [name], "properties": {"comment": comment}}
        server.ask("POST", f"{iceberg}/namespaces", body)
    for path, (comment, *columns) in COLUMNS.items():
        namespace, _, name = path.partition(".")
        fields = [column_field(column, number=at) for at, column in enumerate(columns, 1)]
        table = {"name": name, "schema": {"type": "struct", "fields": fields}, "properties": {"comment": comment}}
        server.ask("POST", f"{iceberg}/namespaces/{namespace}/tables", table)
    append_rows(server)
    for name in ("ana", "ben", "etl"):
        server.ask("POST", f"{lake}/users", {"name": name})
    privileges = [{"name": name, "condition": "allow"} for name in ("use_catalog", "use_schema", "select_table")]
    objects = [{"fullName": "main", "type": "CATALOG", "privileges": privileges}]
    server.ask("POST", f"{lake}/roles", {"name": "analysts", "properties": {}, "securableObjects": objects})
    for name in ("ana", "ben"):
        server.ask("PUT", f"{lake}/permissions/users/{name}/grant", {"roleNames": ["analysts"]})
    server.ask("POST", f"{lake}/tags", {"name": "gold", "comment": "checked each day", "properties": {}})
    tags = {"tagsToAdd": ["gold"], "tagsToRemove": []}
    server.ask("POST", f"{lake}/objects/table/main.curated.daily_sales/tags", tags)
    for source, target, job in EDGES:
        event = lineage_event(f"main.{source}", f"main.{target}", job=job)
        server.ask("POST", "/api/limnos/v1/metalakes/lake/lineage", event)


def append_rows(server: LakeServer) -> None:
    """Write three days of sales, so that the table has snapshots."""
    import datetime as dt
    from decimal import Decimal

    import pyarrow as pa

    table = iceberg_catalog(server).load_table("curated.daily_sales")
    for day in (1, 2, 3):
        date, countries = dt.date(2026, 11, day), ("DE", "FR", "IT", "NO")
        counts = [day * 40 + at for at, _ in enumerate(countries)]
        columns = {
            "day": [date] * 4,
            "country": countries,
            "orders": counts,
            "amount": [Decimal(50 * n) for n in counts],
        }
        table.append(pa.table(columns, schema=table.schema().as_arrow()))


def shoot(into: Path) -> None:
    """Write the pictures."""
    from playwright.sync_api import sync_playwright

    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="lake-") as data, sync_playwright() as playwright:
        server = LakeServer(Path(data))
        browser = launch(playwright)
        try:
            fill(server)
            context = browser.new_context(color_scheme="light", viewport={"width": WIDTH, "height": HEIGHT})
            page = context.new_page()
            page.goto(server.url + "/console/")
            page.fill("#user", "admin")
            page.click("button.primary")
            for name, path in PAGES.items():
                page.goto(server.url + path)
                page.screenshot(path=into / f"{name}.png")
        finally:
            browser.close()
            server.stop()
