# SPDX-License-Identifier: Apache-2.0
"""The options that sources of files may set: one list, which Spark's own classes and the guide agree with."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from limnos.pipeline.engine.parser import bare_grammar
from limnos.pipeline.file import read
from limnos.pipeline.problems import InvalidPipeline
from limnos.pipeline.reader_options import HONOURED, REFUSED, option_problem

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "pipeline-sources.md"
CLASSES = {"csv": "csv.CSVOptions", "json": "json.JSONOptions"}


@pytest.mark.spark
@pytest.mark.parametrize("format_", CLASSES)
def test_every_option_of_spark_is_honoured_or_refused(format_: str) -> None:
    """Spark's list of options has no option that neither counts nor is refused by name."""
    options = bare_grammar().jvm.org.apache.spark.sql.catalyst
    for part in CLASSES[format_].split("."):
        options = getattr(options, part)
    spark_names = set(str(options.getAllOptions().mkString(",")).split(","))

    assert spark_names <= {*HONOURED[format_], *REFUSED[format_]}
    assert not set(HONOURED[format_]) & set(REFUSED[format_])


@pytest.mark.parametrize("format_", HONOURED)
def test_guide_names_every_option(format_: str) -> None:
    """The guide's table has the honoured options, and its text the refused ones."""
    text = GUIDE.read_text().partition("**Options**")[2].partition("**Malformed rows**")[0]
    rows = [line for line in text.splitlines() if line.startswith("|") and format_.upper() in line.split("|")[1]]
    table = {name for line in rows for name in re.findall(r"`(\w+)`", line)}
    words = {name for line in text.splitlines() if not line.startswith("|") for name in re.findall(r"`(\w+)`", line)}

    assert table == set(HONOURED[format_])
    assert set(REFUSED[format_]) <= words


@pytest.mark.parametrize(
    "format_,name,words",
    [
        ("csv", "Mode", "the option Mode is set by `malformed` and `schema`"),
        ("csv", "quoteAll", "an option of Spark's writer"),
        ("json", "compression", "the file name's ending selects the compression"),
        ("csv", "ignoreLeadingWhitespaces", "did you mean 'ignoreLeadingWhiteSpace'?"),
        ("json", "header", "there is no option header of JSON files"),
        ("parquet", "ignoreCorruptFiles", "would leave out rows without a finding"),
        ("csv", "maxFilesPerTrigger", "there is no option maxFilesPerTrigger of CSV files"),
    ],
)
def test_other_option_is_refused_with_its_name(format_: str, name: str, words: str) -> None:
    """The reason, or the nearest name, is given."""
    assert words in str(option_problem(format_, name))


def test_case_of_options_is_ignored() -> None:
    """As in Spark; formats whose options are not listed take theirs, and a stream has options of its own."""
    assert option_problem("csv", "IGNOREleadingwhitespace") is None
    assert option_problem("orc", "anything") is None
    assert option_problem("json", "maxFilesPerTrigger", stream=True) is None
    assert "before the run is published" in str(option_problem("json", "cleanSource", stream=True))


def test_refused_option_has_its_position_in_the_file(tmp_path: Path) -> None:
    """The check of a file names the option's line and column."""
    text = (
        "pipeline: p\ncatalog: main\nsources:\n  s:\n    files: a.csv\n    options:\n      header: true\n     "
        " enforceSchema: true\n  t: {stream: {files: a/, format: json, schema: 'a int', options: {cleanSource:"
        " delete}}}\nsteps:\n  a.t: {load: s}\n"
    )

    with pytest.raises(InvalidPipeline) as refused:
        read(text, file="p.yaml", directory=tmp_path)

    first, second = str(refused.value).splitlines()
    assert first.startswith("p.yaml:8:7: the option enforceSchema is set by")
    assert second.startswith("p.yaml:9:68: the option cleanSource would remove files")
