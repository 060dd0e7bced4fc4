# SPDX-License-Identifier: Apache-2.0
"""`create pipeline`: writes the file of a small pipeline, with comments, to begin with. It needs no server."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from limnos.cli.common import DEFAULTS, CommonFlags
from limnos.cli.failures import UsageError
from limnos.cli.output import show_done

_ENDINGS: Final = (".yaml", ".yml")
_TEXT: Final = """\
# A pipeline: each step makes a table, and one commit publishes all tables, or none.
#
#   limnos pipeline check {file}
#   limnos pipeline plan {file}
#   limnos pipeline run {file}
#
# All keys are in the documentation: reference/pipeline-file.

pipeline: {name}
catalog: {catalog}

# Values of queries, which a run may set: limnos pipeline run {file} --param least=10
parameters:
  least: {{type: double, default: 5}}

# Files, databases and streams that steps read. For a CSV file beside this file:
# sources:
#   orders:
#     files: data/orders*.csv
#     schema: id bigint, customer string, amount double, ordered_on date
#     options: {{header: true}}

steps:
  # The name of a step is the name of its table below the catalog.
  {namespace}.orders:
    # With the source above: `load: orders` in place of the query.
    sql: |
      SELECT id, customer, amount, ordered_on
      FROM VALUES
        (1, 'ana', 12.5D, DATE '2026-01-30'),
        (2, 'ben', 7.0D, DATE '2026-01-30'),
        (3, 'ana', 4.2D, DATE '2026-01-31')
        AS orders (id, customer, amount, ordered_on)
    # What must be true of the rows before any table is published.
    expect:
      - amount > 0
      - unique: id

  # A step that reads the table of another step runs after it.
  {namespace}.customers:
    sql: |
      SELECT customer, sum(amount) AS total, max(ordered_on) AS last_order
      FROM {namespace}.orders
      WHERE amount >= :least
      GROUP BY customer
    # A run replaces the rows of a table, unless `write` says how it changes them.
    write: {{mode: merge, keys: customer}}
"""


def create(
    file: Path,
    /,
    *,
    catalog: Annotated[str, Parameter(help="The catalog of the pipeline's tables.")] = "main",
    common: CommonFlags = DEFAULTS,
) -> None:
    """Write the file of a small pipeline with comments, to change. It overwrites no file, and needs no server.

    Parameters
    ----------
    file
        The file to write; it ends in .yaml.
    """
    _check_ending(file)
    name = _name_of(file)
    namespace = f"{name}_tables" if name == catalog else name
    quoted_file = shlex.quote(str(file))
    text = _TEXT.format(file=quoted_file, name=name, catalog=catalog, namespace=namespace)
    try:
        with file.open("x", encoding="utf-8") as new:
            new.write(text)
    except FileExistsError:
        raise UsageError(
            f"{file} exists, and is not overwritten",
            hint=f"give another name, or 'limnos pipeline check {quoted_file}'",
        ) from None
    except FileNotFoundError:
        raise UsageError(
            f"there is no directory {file.parent}", hint=f"'mkdir -p {shlex.quote(str(file.parent))}'"
        ) from None
    show_done(
        f"wrote pipeline {name} to {file}: 'limnos pipeline check {quoted_file}' checks it, 'limnos pipeline run"
        f" {quoted_file}' makes its tables",
        {"file": str(file), "pipeline": name, "catalog": catalog},
        output_format=common.output_format,
    )


def _check_ending(file: Path) -> None:
    """Raise UsageError for a file that is no YAML, with the command to type."""
    if file.suffix in _ENDINGS:
        return
    if file.suffix == ".py":
        raise UsageError(
            "a pipeline in Python is written by hand: the documentation has one (start/pipelines)",
            hint=_command(file.with_suffix(".yaml")),
        )
    raise UsageError(f"the file of a pipeline ends in .yaml, and {file} does not", hint=_command(Path(f"{file}.yaml")))


def _command(file: Path) -> str:
    return f"'limnos create pipeline {shlex.quote(str(file))}'"


def _name_of(file: Path) -> str:
    """Return the name of the file as that of a pipeline and of a namespace: letters, digits and underscores."""
    name = re.sub(r"[^A-Za-z0-9_]+", "_", file.stem).strip("_").lower()
    return name if name[:1].isalpha() else f"pipeline_{name}".rstrip("_")
