# SPDX-License-Identifier: Apache-2.0
"""Confinement of a process with Spark: the SQL++ engine, and the server's executor of maintenance.

Must not know the work of the process. It runs before PySpark is imported and before the process has threads.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from limnos.confinement.file_rules import SYSTEM, FileRules
from limnos.confinement.file_tree import TEMPORARY
from limnos.confinement.landlock import confine
from limnos.confinement.namespaces import isolate
from limnos.spark.jars import cache_directory

logger = logging.getLogger(__name__)


def confine_spark_process(rules: FileRules) -> None:
    """Limit this process and its children to the files of the rules, of the system, of Python and of Java.

    Where the machine allows namespaces, the caller continues in a child process, which has processes, paths and shared
    memory of its own, and this process waits and ends with it. Landlock follows. If the machine has only one of both,
    or none, the log warns. Raises OSError.
    """
    all_rules = replace(rules, readable=(*SYSTEM, *_directories(), *rules.readable))
    reason = isolate(all_rules)
    if reason:
        logger.warning("This machine gives the process no namespaces, so Landlock alone confines it: %s", reason)
    confined = confine(all_rules if reason else replace(all_rules, temporary=TEMPORARY))
    if not confined and reason:
        logger.warning("This kernel has no Landlock: the process can access all files of the server's user")


def _directories() -> Iterable[str]:
    """Return the directories that the process reads: of Python, its libraries, Java, the cache of archives, and the
    programs of PATH, with which Spark's scripts start Java.
    """
    directory_names = (sys.prefix, sys.base_prefix, os.environ.get("JAVA_HOME", ""), *sys.path, str(cache_directory()))
    programs = [each for each in os.environ.get("PATH", "").split(os.pathsep) if each.startswith("/")]
    return [str(Path(path).resolve()) for path in (*directory_names, *programs) if path]
