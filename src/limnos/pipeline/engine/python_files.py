# SPDX-License-Identifier: Apache-2.0
"""Python files on executors: sent by Spark, or inside the functions that use them.

Spark sends a file of one name once, and cannot replace it: a second file with the same name fails every later task of
the session. So if another file of that name was sent before (of another pipeline, or before an edit), the functions of
its module are sent with their code instead. Must not know pipelines.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark import SparkFiles, cloudpickle
from pyspark.errors import PySparkException

from limnos.model.errors import BadRequest
from limnos.pipeline.engine.metadata import is_classic
from limnos.pipeline.modules import imported_modules

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def ship_files(spark: SparkSession, paths: Iterable[Path]) -> None:
    """Send Python files to the executors. Raises BadRequest for a file that Spark cannot send."""
    replaced_paths = [path for path in paths if not _is_sent(spark, path)]
    if not replaced_paths:
        return
    other = next((path for path in replaced_paths if path.suffix not in {".py", ""}), None)
    if other is not None:
        raise BadRequest(
            f"python_files: another file {other.name!r} was already sent to the executors of this Spark, which cannot "
            "replace it. Rename the file, or run the pipeline in its own Spark."
        )
    names = {path.stem for path in replaced_paths if path.suffix}
    for module in imported_modules():
        _refuse_late_imports(Path(str(module.__file__)), names=names)
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]


def _is_sent(spark: SparkSession, path: Path) -> bool:
    """Send a file, unless another one of its name was sent before. Returns whether executors have this file.

    A package's directory is not sent: its functions are sent with their code.
    """
    if path.is_dir():
        return False
    if is_classic(spark):
        sent = Path(SparkFiles.get(path.name))
        if sent.is_file():
            return path.is_file() and sent.read_bytes() == path.read_bytes()
        spark.sparkContext.addPyFile(str(path))
        return True
    try:
        spark.addArtifacts(str(path), pyfile=True)
    except PySparkException as error:
        if "ALREADY_EXISTS" not in str(error):
            raise
        return False
    return True


def _refuse_late_imports(file: Path, *, names: set[str]) -> None:
    """Raise BadRequest if a function imports one of the modules when it runs: an executor would find the other file."""
    tree = ast.parse(file.read_text(encoding="utf-8"), filename=str(file))
    functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    imports = [node for each in functions for node in ast.walk(each) if isinstance(node, (ast.Import, ast.ImportFrom))]
    for node in imports:
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        name = next((each for each in modules if each.partition(".")[0] in names), None)
        if name is not None:
            raise BadRequest(
                f"{file}:{node.lineno}: {name!r} is imported inside a function, and another module of that name "
                "was already sent to the executors of this Spark. Import it at the top of the file, rename it, or "
                "run the pipeline in its own Spark."
            )
