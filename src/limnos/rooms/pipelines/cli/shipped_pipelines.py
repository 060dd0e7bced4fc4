# SPDX-License-Identifier: Apache-2.0
"""`pipeline shipped`: pipelines that come with the product, to run by name, or as files to copy."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter

from limnos.cli.common import DEFAULTS, CommonFlags
from limnos.cli.extras import import_extra
from limnos.cli.output import show_rows


def list_shipped(
    name: str | None = None,
    /,
    *,
    catalog: Annotated[str, Parameter(help="The catalog of the pipeline's tables.")] = "main",
    common: CommonFlags = DEFAULTS,
) -> None:
    """List the pipelines that come with Limnos, or print the file of one, to copy and to change.

    `limnos pipeline run shipped:NAME` runs one as it is. They read system tables: who may do what and since when, who
    did what, what tables cost, which are unused.

    Parameters
    ----------
    name
        The name of a pipeline; without it, all are listed.
    """
    pipelines = import_extra("limnos.pipeline.shipped", extra="pipelines")
    if name is None:
        rows = [{"name": each, "comment": comment} for each, comment in pipelines.shipped_pipelines().items()]
        show_rows(rows, ["name", "comment"], output_format=common.output_format, empty="no pipelines")
    else:
        sys.stdout.write(pipelines.shipped_declaration(name, catalog=catalog))
