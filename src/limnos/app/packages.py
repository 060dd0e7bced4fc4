# SPDX-License-Identifier: Apache-2.0
"""Startup checks that the optional packages (extras) that the settings need are installed.

Packages that only single requests need are not checked here; such requests are refused with the package's name.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from limnos.app.node_builder import database_of
from limnos.app.request_defaults import warehouse_of
from limnos.app.startup_errors import masked_address, missing_package_error
from limnos.config.settings import Settings
from limnos.model.extras import SCHEME_EXTRAS

DRIVERS: Final = ("psycopg", "asyncpg")
STORES: Final = {"s3": "s3fs", "gs": "gcsfs", "abfs": "adlfs"}
"""The library for object stores of each URL scheme."""


def require_driver(settings: Settings) -> None:
    """Check that the driver of the store is installed. Raises CannotStart if it is missing."""
    database = database_of(settings)
    for name in DRIVERS if "://" in database else ():
        if find_spec(name) is None:
            raise missing_package_error(f"the store {masked_address(database)} needs '{name}'", "postgres")


def require_packages(settings: Settings) -> None:
    """Check that the packages that the settings need are installed: the store's driver, and the warehouse's library.

    Raises CannotStart if one is missing.
    """
    require_driver(settings)
    scheme = warehouse_of(settings).partition(":")[0]
    if scheme in STORES and find_spec(STORES[scheme]) is None:
        raise missing_package_error(
            f"the warehouse {warehouse_of(settings)} needs '{STORES[scheme]}'", SCHEME_EXTRAS[scheme]
        )
