# SPDX-License-Identifier: Apache-2.0
"""The options of COPY TO: AsterixDB's names, limits and errors."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.language import SqlppError, parse, tree
from limnos.rooms.sqlpp.language.exports import ExportFormat, check_type, export_format


def _format(settings: str, more: str = "") -> ExportFormat:
    statement = parse(f"copy d to localfs path ('/x') {more} with {{{settings}}}")[0].statement
    assert isinstance(statement, tree.CopyTo)
    if statement.type is not None:
        check_type("csv" if "csv" in settings else "parquet", statement.type)
    return export_format(statement.options, statement.formats, has_type=statement.type is not None)


def test_export_options_are_parsed() -> None:
    """Numbers, sizes, compression and file name suffixes are parsed."""
    form = _format("'format': 'JSON', 'compression': 'gzip', 'max-objects-per-file': 2000, 'max-file-size': '5.5MB'")

    assert (form.name, form.compression, form.objects_max, form.bytes_max) == ("json", "gzip", 2000, 5_767_168)
    assert form.ending == ".json.gz"
    assert _format("'format': 'parquet', 'compression': 'gzip'").ending == ".parquet"
    form = _format("'format': 'csv', 'header': true", "as (a int, d date) date 'YYYY'")
    assert (form.options, form.dates, form.ending) == ({"header": "true"}, {"date": "YYYY"}, ".csv")


@pytest.mark.parametrize(
    "settings,more,code,says",
    [
        (
            "'format': 'avro'",
            "",
            1189,
            "Unsupported writing format 'avro'. Supported formats: [adm, csv, json, parquet, tsv]",
        ),
        ("", "", 1189, "Unsupported writing format ''"),
        (
            "'format': 'json', 'compression': 'rar'",
            "",
            1202,
            "Unsupported compression scheme rar. Supported schemes for json are [gzip]",
        ),
        ("'format': 'csv'", "", 1079, "TYPE/AS Expression is required for csv format"),
        (
            "'format': 'json', 'max-objects-per-file': 2",
            "",
            1197,
            "Minimum value allowed for 'max-objects-per-file' is 1000. Found 2",
        ),
        ("'format': 'json', 'max-objects-per-file': 'hello'", "", 39, "Expected integer value, got hello"),
        (
            "'format': 'json', 'max-file-size': '1MB'",
            "",
            1197,
            "Minimum value allowed for 'max-file-size' is 5 MiB. Found 1MB",
        ),
        (
            "'format': 'json', 'max-file-size': '6TB'",
            "",
            1209,
            "Maximum value allowed for 'max-file-size' is 5 GiB. Found 6TB",
        ),
        (
            "'format': 'json', 'max-file-size': 'random'",
            "",
            1206,
            "Storage units expected for the field 'max-file-size'",
        ),
        (
            "'format': 'parquet', 'row-group-size': 'random'",
            "",
            1206,
            "Storage units expected for the field 'row-group-size'",
        ),
        ("'format': 'parquet', 'max-objects-per-file': 1000001", "", 1209, "Maximum value allowed"),
        ("'format': 'json', 'header': true", "", 1079, "COPY TO has no option header for the format json"),
        ("'format': 'json', 'gzipCompressionLevel': 12", "", 1079, "between 1 and 9"),
        (
            "'format': 'csv', 'quote': 'ABCD'",
            "as (a int)",
            1217,
            "'ABCD' is not a valid quote. The length of a quote should be 1",
        ),
        (
            "'format': 'csv', 'delimiter': '||'",
            "as (a int)",
            3049,
            "'||' is not a valid delimiter. The length of a delimiter should be 1",
        ),
        (
            "'format': 'csv', 'escape': '||'",
            "as (a int)",
            1219,
            "'||' is not a valid escape. The length of a escape should be 1",
        ),
        ("'format': 'csv', 'force-quote': 'no'", "as (a int)", 1218, "force-quote"),
        ("'format': 'csv'", "type ({a: {b: int}})", 1207, "'object' type not supported in csv format"),
        ("'format': 'csv'", "type ({a: [int]})", 1207, "'array' type not supported in csv format"),
        (
            "'format': 'parquet'",
            "type ({a: [{b: rectangle}]})",
            1204,
            "'rectangle' type not supported in parquet format",
        ),
    ],
)
def test_wrong_export_option_error_has_number_and_expected_values(
    settings: str, more: str, code: int, says: str
) -> None:
    """The error for a wrong option has its number and the expected values."""
    with pytest.raises(SqlppError) as raised:
        _format(settings, more)

    assert (raised.value.number, says in raised.value.message) == (code, True), raised.value.text
