# SPDX-License-Identifier: Apache-2.0
"""`pipeline test`: unit tests of a pipeline's steps. Needs Spark and no server."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from limnos.cli.common import DEFAULTS, CommonFlags
from limnos.cli.extras import import_extra
from limnos.cli.failures import ExitCode, UsageError
from limnos.cli.output import show_rows, to_json, visible
from limnos.rooms.pipelines.cli.helper.client import HelperFlag, HelperWish, answer
from limnos.rooms.pipelines.cli.pipeline_runs import ExcludeFlag, MasterFlag, SelectFlag

if TYPE_CHECKING:
    from limnos.pipeline.unit_test_results import UnitTestResult

_FAILED = 10
"""The exit code of failed tests: as of a run whose rows break an expectation."""


def unit_test(
    file: Path,
    /,
    *,
    select: SelectFlag = None,
    exclude: ExcludeFlag = None,
    test: Annotated[str | None, Parameter(help="Only tests of this name; `*` stands for any characters.")] = None,
    junit: Annotated[Path | None, Parameter(help="Also write the results to this file, as JUnit's XML.")] = None,
    master: MasterFlag = "local[2]",
    helper: HelperFlag = None,
    common: CommonFlags = DEFAULTS,
) -> int:
    """Run the unit tests of a pipeline's steps in one Spark session, and show rows that differ.

    Exit codes: 0 all tests passed, 2 a mistake in the file or in a test, 10 a test failed.

    Parameters
    ----------
    file
        The pipeline, a file that ends in .yaml or .py.
    """
    exit_code = answer(HelperWish(flag=helper, default="never"), common=common, master=master)
    if exit_code is not None:
        return exit_code
    runs = import_extra("limnos.pipeline.run.unit_tests", extra="spark")
    options = import_extra("limnos.pipeline.run.options", extra="spark").RunOptions(
        select=tuple(select or ()), exclude=tuple(exclude or ())
    )
    if junit is not None and not junit.absolute().parent.is_dir():
        raise UsageError(f"--junit {junit}: there is no directory {junit.parent}", hint="make the directory first")
    is_table = common.output_format == "table"
    results: tuple[UnitTestResult, ...] = runs.run_file_tests(
        file, options=options, only=test, master=master, listener=_show if is_table else _ignore
    )
    if junit is not None:
        render = import_extra("limnos.pipeline.unit_test_results", extra="pipelines").junit_xml
        junit.write_text(render(file.stem, results), encoding="utf-8")
    passed = sum(one.state == "passed" for one in results)
    if is_table:
        print(f"{passed} of {len(results)} tests passed")
    else:
        print(to_json([_document(one) for one in results]))
    if any(one.state == "invalid" for one in results):
        return ExitCode.USAGE
    return ExitCode.OK if passed == len(results) else _FAILED


def _ignore(result: UnitTestResult) -> None:
    """No-op: JSON is printed when all tests are done."""


def _show(result: UnitTestResult) -> None:
    """Print the result of a test, and a table of the rows that differ."""
    if result.problem is None:
        print(visible(f"passed  {result.step}: {result.test}"))
        return
    print(visible(f"{result.state.upper():<8}{result.problem}"))
    if result.differences:
        rows = [{"row": one.kind, **dict(zip(result.columns, one.cells, strict=True))} for one in result.differences]
        show_rows(rows, ["row", *result.columns], output_format="table", verbatim=True)
    sys.stdout.flush()


def _document(result: UnitTestResult) -> dict[str, object]:
    at = None if result.problem is None or result.problem.at is None else result.problem.at._asdict()
    return {
        "step": result.step,
        "test": result.test,
        "state": result.state,
        "seconds": round(result.seconds, 3),
        "message": result.message,
        "at": at,
        "columns": list(result.columns),
        "differences": [{"row": one.kind, "cells": list(one.cells)} for one in result.differences],
    }
