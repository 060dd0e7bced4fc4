# SPDX-License-Identifier: Apache-2.0
"""The flag `--conf KEY=VALUE`: settings of Spark on a command line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from cyclopts import Parameter

from limnos.cli.failures import UsageError

ConfFlag = Annotated[list[str] | None, Parameter(negative="", help="KEY=VALUE for Spark; may be repeated.")]


def spark_conf(texts: Iterable[str] | None) -> dict[str, str]:
    """Parse settings of Spark, each as KEY=VALUE. Raises UsageError for another form."""
    settings = {}
    for text in texts or ():
        key, sign, value = text.partition("=")
        if not sign or not key:
            raise UsageError(f"--conf {text}: write KEY=VALUE, as spark.cores.max=2")
        settings[key] = value
    return settings
