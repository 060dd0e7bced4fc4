# SPDX-License-Identifier: Apache-2.0
"""`pipeline graph | docs`: a drawing of a pipeline, and pages about its tables. The server is only read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from limnos.cli.common import DEFAULTS, CommonFlags
from limnos.cli.extras import import_extra
from limnos.cli.failures import UsageError
from limnos.cli.output import show_done
from limnos.rooms.pipelines.cli.pipeline_checks import OfflineFlag, check_file
from limnos.rooms.pipelines.cli.pipeline_runs import EnvironmentFlag
from limnos.rooms.pipelines.cli.run_ids import LAST, complete_run_id

if TYPE_CHECKING:
    from limnos.client.activity.runs import Run
    from limnos.pipeline.checks import CheckResult
    from limnos.pipeline.reads import StepReads


def graph(
    file: Path,
    /,
    *,
    out: Annotated[Path, Parameter(help="The file to write; its name ends in .svg or .html.")],
    env: EnvironmentFlag = None,
    run: Annotated[
        str | None, Parameter(help="A run of the pipeline, or 'last': its steps are drawn with their states.")
    ] = None,
    with_columns: Annotated[
        bool, Parameter(negative="", help="Also draw columns with their types, and which come from which.")
    ] = False,
    offline: OfflineFlag = False,
    common: CommonFlags = DEFAULTS,
) -> None:
    """Draw the sources, tables and steps of a pipeline, and which reads which.

    Needs a server for a run's states, and for columns of existing tables. A page opens the columns of a box by a click.

    Parameters
    ----------
    file
        The pipeline, a file that ends in .yaml or .py.
    """
    if out.suffix not in {".svg", ".html"}:
        raise UsageError(f"--out {out}: the name ends in .svg or .html", hint="write for example --out graph.svg")
    check_result, reads = _check_file(
        file, environment=env, offline=offline or not with_columns, common=common, with_columns=with_columns
    )
    graph_of = import_extra("limnos.pipeline.drawn_graph", extra="pipelines").graph_of
    shown_run = None if run is None else _run_of(check_result.pipeline.name, run, common=common)
    drawn = graph_of(check_result.pipeline, reads, run=shown_run, columns=check_result.columns)
    if out.suffix == ".svg":
        _write(out, import_extra("limnos.pipeline.drawing", extra="pipelines").svg(drawn))
    else:
        _write(out, import_extra("limnos.pipeline.graph_pages", extra="pipelines").html_graph(drawn))
    result = {"file": str(out), "nodes": len(drawn.nodes), "edges": len(drawn.edges)}
    show_done(f"wrote {out}: {len(drawn.nodes)} nodes", result, output_format=common.output_format)


def docs(
    file: Path,
    /,
    *,
    out: Annotated[Path, Parameter(help="The directory to write: a new or empty one, or one with earlier pages.")],
    env: EnvironmentFlag = None,
    offline: OfflineFlag = False,
    common: CommonFlags = DEFAULTS,
) -> None:
    """Write pages about a pipeline: its graph, and for each table columns, lineage, expectations and last runs.

    The pages have what you may see. Without a server they have what the file says.

    Parameters
    ----------
    file
        The pipeline, a file that ends in .yaml or .py.
    """
    check_result, reads = _check_file(file, environment=env, offline=offline, common=common, with_columns=True)
    site = import_extra("limnos.pipeline.site", extra="pipelines")
    columns = {} if check_result.columns is None else {"columns": check_result.columns}
    facts = site.SiteFacts(**columns)
    if check_result.table_lookups is not None:
        with common.client() as client:
            runs = site.recent_runs(client, check_result.pipeline)
        metadata = {name: one.metadata for name, one in check_result.table_lookups.items() if one.metadata is not None}
        facts = site.SiteFacts(metadata=metadata, runs=runs, **columns)
    try:
        pages: int = site.write_site(check_result.pipeline, reads, facts=facts, directory=out)
    except OSError as error:
        raise UsageError(f"--out {out}: {error.strerror}", hint="name a directory that you may write") from None
    show_done(
        f"wrote {pages} pages to {out}", {"directory": str(out), "pages": pages}, output_format=common.output_format
    )


def _run_of(pipeline: str, typed: str, *, common: CommonFlags) -> Run:
    """Return a run with its steps; for `last` the pipeline's newest run. Raises UsageError for a run of another
    pipeline.
    """
    with common.client() as client:
        if typed == LAST:
            newest = next(iter(client.runs.list(pipeline=pipeline, limit=1)), None)
            if newest is None:
                raise UsageError(
                    f"there is no run of {pipeline} that you may see", hint="'limnos pipeline run FILE' starts one"
                )
            return client.runs.load(newest.id)
        result = client.runs.load(complete_run_id(client, typed))
    if result.pipeline != pipeline:
        raise UsageError(
            f"run {result.id} is one of {result.pipeline}, and the file is {pipeline}",
            hint=f"'limnos list runs {pipeline}' lists its runs; --env names an environment",
        )
    return result


def _check_file(
    file: Path, *, environment: str | None, offline: bool, common: CommonFlags, with_columns: bool
) -> tuple[CheckResult, dict[str, StepReads]]:
    """Check the file. Raises InvalidPipeline for a file with problems, UsageError without the grammar of queries."""
    check_result = check_file(file, environment=environment, offline=offline, common=common, with_columns=with_columns)
    invalid = import_extra("limnos.pipeline.problems", extra="pipelines").InvalidPipeline
    if isinstance(check_result, tuple):
        raise invalid(check_result)
    if check_result.problems:
        raise invalid(check_result.problems)
    if check_result.reads is None:
        raise UsageError(
            "; ".join(check_result.unchecked), hint="install Spark: the inputs of queries are found by its grammar"
        )
    return check_result, dict(check_result.reads)


def _write(out: Path, text: str) -> None:
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--out {out}: {error.strerror}", hint="name a file that you may write") from None
