# SPDX-License-Identifier: Apache-2.0
"""Checks and parsing that several sections share.

Must not know sections.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import Annotated, Final

from pydantic.functional_validators import AfterValidator, BeforeValidator


def split_listen(text: str) -> tuple[str, int]:
    """Split `HOST:PORT`. An IPv6 host is in brackets; port 0 means any free port.

    Raises ValueError with a message for the operator.
    """
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    bare = host[1:-1] if bracketed else host
    if not colon or not bare or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"'{text}' is not HOST:PORT with a port from 0 to 65535; write for example 127.0.0.1:8090")
    if ":" in bare and not bracketed:
        raise ValueError(f"'{text}': put an IPv6 address in brackets, for example [::1]:8090")
    return bare, int(port)


def is_loopback(host: str) -> bool:
    """Return whether `host` can be reached from this machine only."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def split_words(value: object) -> object:
    """Split a comma-separated string, such as an environment variable, into names; return other values unchanged."""
    if isinstance(value, str):
        return tuple(word for word in (part.strip() for part in value.split(",")) if word)
    return value


def check_root(text: str) -> str:
    """Check the URI or path of a storage root in the settings. Raises ValueError."""
    if not re.match("/|file:/|[a-z0-9]+://", text):
        raise ValueError(
            f"'{text}' is not a location; write for example /srv/tables, file:///srv/tables or s3://bucket/tables"
        )
    return text


_SECRET_NAME = re.compile("secret|password|token|access.?key|authorization", re.IGNORECASE)


def check_spark_setting(text: str) -> str:
    """Check a setting of Spark, `KEY=VALUE`. Raises ValueError, also for a secret's name, because commands show the
    settings of a server.
    """
    key, sign, _ = text.partition("=")
    if not sign or re.fullmatch(r"spark\.[\w.-]+", key, re.ASCII) is None:
        raise ValueError("write KEY=VALUE, as spark.cores.max=2")
    if _SECRET_NAME.search(key):
        raise ValueError(
            f"{key} is a secret, and these settings are shown: set it in spark-defaults.conf on the workers"
        )
    return text


Root = Annotated[str, AfterValidator(check_root)]
Words = BeforeValidator(split_words)
SparkSettings = Annotated[tuple[Annotated[str, AfterValidator(check_spark_setting)], ...], Words]
"""Settings of Spark, each as `KEY=VALUE`."""


def spark_settings(texts: Iterable[str]) -> dict[str, str]:
    """Return checked settings of Spark by their keys."""
    return {key: value for key, _, value in (each.partition("=") for each in texts)}


SPARK_CONFIGS = (
    "spark.app.name",
    "spark.default.parallelism",
    "spark.driver.cores",
    "spark.driver.maxResultSize",
    "spark.driver.memory",
    "spark.dynamicAllocation.*",
    "spark.executor.cores",
    "spark.executor.instances",
    "spark.executor.memory",
    "spark.sql.adaptive.*",
    "spark.sql.ansi.enabled",
    "spark.sql.session.timeZone",
    "spark.sql.shuffle.partitions",
)
"""Spark properties that name neither code nor files."""


_HOUR_S: Final = 3600


def require_zero_or_an_hour(seconds: int) -> int:
    """Check an age in seconds: 0, which means never, or at least 3600. Raises ValueError."""
    if seconds != 0 and seconds < _HOUR_S:
        raise ValueError(f"write 0, or at least {_HOUR_S}")
    return seconds
