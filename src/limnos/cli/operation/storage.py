# SPDX-License-Identifier: Apache-2.0
"""`storage check | keys | rotate-key`: checks of a catalog's storage, and encryption keys."""

from __future__ import annotations

import sys

import msgspec
from cyclopts import App

from limnos.cli.common import DEFAULTS, CommonFlags
from limnos.cli.output import show_done, show_rows, visible
from limnos.client.values import SecretKeys

app = App(name="storage")


@app.command
def check(catalog: str = "main", /, *, common: CommonFlags = DEFAULTS) -> int:
    """Check a catalog's storage: write, list, read, delete, and vended credentials. Exit code 1 if a step fails.

    Policy statements that would grant missing rights are printed. You need the right to alter the catalog.

    Parameters
    ----------
    catalog
        The catalog, as `main`.
    """
    with common.client() as client:
        result = client.storage.check(catalog)
    rows = [msgspec.structs.asdict(step) for step in result.steps]
    show_rows(rows, ["name", "outcome", "told"], output_format=common.output_format)
    for step in result.steps:
        if step.statement is not None:
            sys.stderr.write(visible(f"{step.name}: add {step.statement}") + "\n")
    return 0 if result.passed else 1


@app.command
def keys(*, common: CommonFlags = DEFAULTS) -> None:
    """List the ids of the keys that encrypt secrets of catalogs and webhooks. Only for service admins."""
    with common.client() as client:
        secret_keys = client.storage.keys()
    rows = [{**msgspec.structs.asdict(key), "here": True} for key in secret_keys.keys]
    rows += [{**msgspec.structs.asdict(key), "here": False} for key in secret_keys.lacking]
    show_rows(
        rows,
        ["id", "seals", "catalogs", "webhooks", "here"],
        output_format=common.output_format,
        empty="there are no keys",
    )
    _warn(secret_keys)


@app.command(name="rotate-key")
def rotate_key(*, common: CommonFlags = DEFAULTS) -> None:
    """Re-encrypt all secrets of catalogs and webhooks with the newest key. Only for service admins.

    A server that manages its key file creates a new key first.
    """
    with common.client() as client:
        secret_keys = client.storage.rotate_key()
    newest = next((key.id for key in secret_keys.keys if key.seals), "")
    show_done(
        f"secrets of {secret_keys.sealed} catalogs and webhooks were sealed under key {newest}",
        msgspec.structs.asdict(secret_keys),
        output_format=common.output_format,
    )
    _warn(secret_keys)


def _warn(secret_keys: SecretKeys) -> None:
    for key in secret_keys.lacking:
        sys.stderr.write(
            visible(
                f"key {key.id} is missing, and secrets of {key.catalogs} catalogs and {key.webhooks} webhooks are"
                " sealed under it"
            )
            + "\n"
        )
    if secret_keys.plain:
        sys.stderr.write(
            f"secrets of {secret_keys.plain} catalogs or webhooks are not sealed: 'limnos storage rotate-key' seals"
            " them\n"
        )
