# SPDX-License-Identifier: Apache-2.0
"""Each option of CSV and JSON sources has the effect that it has in Spark: both read the same file."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.types import StructType

from limnos.pipeline.engine.sources import SourceReadRequest, frame_of
from limnos.pipeline.reader_options import HONOURED
from limnos.pipeline.source_declarations import DeclaredSource, Files, MalformedRowPolicy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A file, and an option that changes what is read of it."""

    value: str
    text: str | bytes
    schema: str | None = None
    more: dict[str, str] = field(default_factory=dict)
    """Further options, for both reads."""
    changes: bool = True
    """Whether the rows or their types differ from those without the option."""


TIMES = "t\n01/02/2026 10:00\n"
CSV = {
    "encoding": Sample(value="UTF-16", text="id,v\n1,\u00e9\n".encode("utf-16"), schema="id int, v string"),
    "charset": Sample(value="ISO-8859-1", text="id,v\n1,\u00e9\n".encode("latin-1"), schema="id int, v string"),
    "lineSep": Sample(value="|", text="id,v|1,a|2,b", schema="id int, v string"),
    "multiLine": Sample(value="true", text='id,v\n1,"a\nb"\n', schema="id int, v string"),
    "samplingRatio": Sample(value="1.0", text="id\n1\n", changes=False),
    "locale": Sample(value="de", text="d\n5 Mai 2026\n", schema="d date", more={"dateFormat": "d MMMM yyyy"}),
    "timeZone": Sample(value="America/New_York", text="t\n2026-01-01 00:00:00\n", schema="t timestamp"),
    "dateFormat": Sample(value="dd/MM/yyyy", text="d\n01/02/2026\n", schema="d date"),
    "timestampFormat": Sample(value="dd/MM/yyyy HH:mm", text=TIMES, schema="t timestamp"),
    "timestampNTZFormat": Sample(value="dd/MM/yyyy HH:mm", text=TIMES, schema="t timestamp_ntz"),
    "enableDateTimeParsingFallback": Sample(value="false", text="d\n2026-1-1\n", schema="d date", changes=False),
    "recursiveFileLookup": Sample(value="true", text="id\n1\n", changes=False),
    "pathGlobFilter": Sample(value="*.csv", text="id\n1\n", changes=False),
    "modifiedBefore": Sample(value="2100-01-01T00:00:00", text="id\n1\n", changes=False),
    "modifiedAfter": Sample(value="2000-01-01T00:00:00", text="id\n1\n", changes=False),
    "header": Sample(value="false", text="id\n1\n", schema="id string"),
    "sep": Sample(value=";", text="id;v\n1;a\n", schema="id int, v string"),
    "delimiter": Sample(value="\t", text="id\tv\n1\ta\n", schema="id int, v string"),
    "quote": Sample(value="'", text="id,v\n1,'a,b'\n", schema="id int, v string"),
    "escape": Sample(value='"', text='id,v\n1,"a""b"\n', schema="id int, v string"),
    "charToEscapeQuoteEscaping": Sample(value="#", text='id,v\n1,"a#\\"\n', schema="id int, v string"),
    "comment": Sample(value="#", text="#c\nid,v\n#d\n1,a\n", schema="id int, v string"),
    "ignoreLeadingWhiteSpace": Sample(value="true", text="id,  v\n1,  a\n", schema="id int, v string"),
    "ignoreTrailingWhiteSpace": Sample(value="true", text="id,v  \n1,a  \n", schema="id int, v string"),
    "nullValue": Sample(value="NA", text="id,v\n1,NA\n", schema="id int, v string"),
    "emptyValue": Sample(value="E", text='id,v\n1,""\n', schema="id int, v string"),
    "nanValue": Sample(value="none", text="x\nnone\n", schema="x double"),
    "positiveInf": Sample(value="big", text="x\nbig\n", schema="x double"),
    "negativeInf": Sample(value="small", text="x\nsmall\n", schema="x double"),
    "preferDate": Sample(value="false", text="d\n2026-01-01\n"),
    "inferSchema": Sample(value="false", text="id\n1\n"),
    "maxColumns": Sample(value="5", text="id,v\n1,a\n", schema="id int, v string", changes=False),
    "maxCharsPerColumn": Sample(value="50", text="id,v\n1,a\n", schema="id int, v string", changes=False),
    "inputBufferSize": Sample(value="1024", text="id,v\n1,a\n", schema="id int, v string", changes=False),
    "unescapedQuoteHandling": Sample(
        value="STOP_AT_CLOSING_QUOTE", text='id,v\n1,"a"b,c"\n', schema="id int, v string"
    ),
    "columnPruning": Sample(value="false", text="id,v\n1,a\n", schema="id int, v string", changes=False),
}
JSON = {
    "encoding": Sample(
        value="UTF-16LE",
        text='{"v": "\u00e9"}\n'.encode("utf-16le"),
        schema="v string",
        more={"lineSep": "\n"},
        changes=False,
    ),
    "charset": Sample(
        value="ISO-8859-1", text='{"v": "\u00e9"}\n'.encode("latin-1"), schema="v string", more={"lineSep": "\n"}
    ),
    "lineSep": Sample(value="|", text='{"id": 1}|{"id": 2}'),
    "multiLine": Sample(value="true", text='[{"id": 1},\n{"id":\n2}]', schema="id int"),
    "samplingRatio": Sample(value="1.0", text='{"id": 1}', changes=False),
    "locale": Sample(value="de", text='{"d": "5 Mai 2026"}', schema="d date", more={"dateFormat": "d MMMM yyyy"}),
    "timeZone": Sample(value="America/New_York", text='{"t": "2026-01-01 00:00:00"}', schema="t timestamp"),
    "dateFormat": Sample(value="dd/MM/yyyy", text='{"d": "01/02/2026"}', schema="d date"),
    "timestampFormat": Sample(value="dd/MM/yyyy", text='{"t": "01/02/2026"}', schema="t timestamp"),
    "timestampNTZFormat": Sample(value="dd/MM/yyyy HH:mm", text='{"t": "01/02/2026 10:00"}', schema="t timestamp_ntz"),
    "enableDateTimeParsingFallback": Sample(value="false", text='{"d": "2026-1-1"}', schema="d date", changes=False),
    "recursiveFileLookup": Sample(value="true", text='{"id": 1}', changes=False),
    "pathGlobFilter": Sample(value="*.json", text='{"id": 1}', changes=False),
    "modifiedBefore": Sample(value="2100-01-01T00:00:00", text='{"id": 1}', changes=False),
    "modifiedAfter": Sample(value="2000-01-01T00:00:00", text='{"id": 1}', changes=False),
    "primitivesAsString": Sample(value="true", text='{"id": 1, "b": true}'),
    "prefersDecimal": Sample(value="true", text='{"x": 1.25}'),
    "inferTimestamp": Sample(value="true", text='{"t": "2026-01-01T00:00:00Z"}'),
    "dropFieldIfAllNull": Sample(value="true", text='{"id": 1, "n": null}'),
    "allowComments": Sample(value="true", text='{"id": /* c */ 1}', schema="id int"),
    "allowUnquotedFieldNames": Sample(value="true", text="{id: 1}", schema="id int"),
    "allowSingleQuotes": Sample(value="false", text="{'id': 1}", schema="id int"),
    "allowNumericLeadingZeros": Sample(value="true", text='{"id": 007}', schema="id int"),
    "allowNonNumericNumbers": Sample(value="false", text='{"x": NaN}', schema="x double"),
    "allowBackslashEscapingAnyCharacter": Sample(value="true", text='{"v": "a\\d"}', schema="v string"),
    "allowUnquotedControlChars": Sample(value="true", text='{"v": "a\x01b"}', schema="v string"),
    "useUnsafeRow": Sample(value="true", text='{"id": 1}', schema="id int", changes=False),
}
SAMPLES = {("csv", name): sample for name, sample in CSV.items()} | {("json", name): one for name, one in JSON.items()}


def test_every_honoured_option_has_a_sample() -> None:
    """The options of the list, and no others, are compared."""
    assert {"csv": set(CSV), "json": set(JSON)} == {name: set(options) for name, options in HONOURED.items()}


@pytest.mark.parametrize("format_,option", SAMPLES)
def test_option_has_the_effect_that_it_has_in_spark(
    here: SparkSession, tmp_path: Path, format_: str, option: str
) -> None:
    """The rows and types of a source are those of Spark's reader with the same options, in its permissive mode."""
    sample = SAMPLES[format_, option]
    text = sample.text if isinstance(sample.text, bytes) else sample.text.encode()
    (tmp_path / f"a.{format_}").write_bytes(text)
    base = {**({"header": "true"} if format_ == "csv" else {}), **sample.more}
    chosen = {**base, option: sample.value}

    def source(options: dict[str, str]) -> object:
        kind = Files(
            path=f"a.{format_}",
            format=format_,
            schema=sample.schema,
            options=options,
            malformed=MalformedRowPolicy.COUNT,
        )
        try:
            frame = frame_of(
                SourceReadRequest(spark=here, source=DeclaredSource(name="s", kind=kind), directory=tmp_path)
            ).frame
            return frame.schema.simpleString(), repr(frame.collect())
        except Exception as error:  # without the option the file may be unreadable
            return type(error)

    def spark(options: dict[str, str]) -> object:
        options = {"inferSchema": "true", **options} if format_ == "csv" else options
        reader = here.read.format(format_).options(**options).option("columnNameOfCorruptRecord", "bad")
        if sample.schema is None:
            columns = StructType([each for each in reader.load(str(tmp_path)).schema.fields if each.name != "bad"])
        else:
            columns = StructType.fromDDL(sample.schema)
        frame = reader.schema(StructType([*columns.fields]).add("bad", "string")).load(str(tmp_path))
        good = frame.where("bad IS NULL").drop("bad")
        return good.schema.simpleString(), repr(good.collect())

    assert source(chosen) == spark(chosen)
    if sample.changes:
        assert source(chosen) != source(base)
