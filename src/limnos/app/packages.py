"""Packages of extras that a server's settings need: looked for before anything is opened.

May import `config`, `files`, `model` and this room. What a request alone needs is not asked for here: it is refused by name when it comes.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from limnos.app.node_builder import database_of, warehouse_of
from limnos.app.startup_errors import masked_address, missing_package_error
from limnos.model.extras import SCHEME_EXTRAS

if TYPE_CHECKING:
    from limnos.config.settings import Settings

DRIVERS: Final = ("psycopg", "asyncpg")
STORES: Final = {"s3": "s3fs", "gs": "gcsfs", "abfs": "adlfs"}
"""The library by which object stores of a scheme are reached."""


def require_driver(settings: Settings) -> None:
    """Refuse a store whose driver is not installed. Raises CannotStart."""
    database = database_of(settings)
    for name in DRIVERS if "://" in database else ():
        if find_spec(name) is None:
            raise missing_package_error(f"the store {masked_address(database)} needs '{name}'", "postgres")


def require_packages(settings: Settings) -> None:
    """Refuse settings that need a package which is not installed: the store's driver, what reaches the warehouse. Raises CannotStart."""
    require_driver(settings)
    scheme = warehouse_of(settings).partition(":")[0]
    if scheme in STORES and find_spec(STORES[scheme]) is None:
        raise missing_package_error(
            f"the warehouse {warehouse_of(settings)} needs '{STORES[scheme]}'", SCHEME_EXTRAS[scheme]
        )
