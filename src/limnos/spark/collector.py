# SPDX-License-Identifier: Apache-2.0
"""The garbage collector of Spark on one machine: the parallel one, unless the user has chosen one.

It takes an eighth less CPU for pipelines than Java's default, whose concurrent work shortens pauses that nobody waits
for here. Java refuses to start with two collectors, so all places of a user's choice are searched.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

DEFAULT_JAVA_OPTIONS: Final = "spark.driver.defaultJavaOptions"
"""The setting of Java options that Spark adds before those of the user."""
PARALLEL: Final = "-XX:+UseParallelGC"
_CHOICE: Final = re.compile(r"-XX:[+-]Use\w*GC\b")
_OPTIONS: Final = "spark.driver.extraJavaOptions"
_VARIABLES: Final = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")


def is_chosen(settings: Mapping[str, str], environment: Mapping[str, str]) -> bool:
    """Return whether a user's settings, environment or file of Spark's defaults name a collector, or set Java options
    that Spark adds before those of a session.
    """
    defaults = _spark_defaults(environment)
    if DEFAULT_JAVA_OPTIONS in settings or DEFAULT_JAVA_OPTIONS in defaults:
        return True
    texts = [settings.get(_OPTIONS, ""), defaults, *(environment.get(name, "") for name in _VARIABLES)]
    return any(map(_CHOICE.search, texts))


def _spark_defaults(environment: Mapping[str, str]) -> str:
    """Return the text of Spark's file of defaults; empty if there is none that can be read."""
    directory = environment.get("SPARK_CONF_DIR") or f"{environment.get('SPARK_HOME') or _package()}/conf"
    try:
        return (Path(directory) / "spark-defaults.conf").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _package() -> Path:
    spec = find_spec("pyspark")
    return Path() if spec is None or spec.origin is None else Path(spec.origin).parent
