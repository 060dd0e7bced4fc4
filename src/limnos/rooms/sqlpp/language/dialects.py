# SPDX-License-Identifier: Apache-2.0
"""Words of other SQL dialects, and how SQL++ writes the same.

Has no business rules: it compares the text around an error with patterns.
"""

from __future__ import annotations

import re
from typing import Final

SEARCHED_CHARS: Final = 300
"""How many characters before and after an error are compared."""

_CONVERSIONS: Final = {
    type_name: function
    for function, type_names in {
        "to_bigint": "int integer bigint smallint tinyint long int2 int4 int8 hugeint",
        "to_double": "float real double decimal numeric float4 float8 number",
        "to_string": "string varchar text char",
        "to_boolean": "bool boolean",
        "date": "date",
        "datetime": "timestamp datetime timestamptz",
        "time": "time",
    }.items()
    for type_name in type_names.split()
}
_VALUE: Final = r"(?P<value>[\w.`]+|'[^']*'|\"[^\"]*\")"
_BEGIN: Final = r"(?:\A|[;\n])\s*"
"""Where a statement begins."""

_CAST: Final = re.compile(
    rf"\b(?:try_|safe_)?cast\s*\(\s*(?:{_VALUE}\s+as\s+(?P<type>\w+)|(?:[^()]|\([^()]*\))*?\bas\b)?"
    rf"|{_VALUE.replace('value', 'of')}\s*::\s*(?P<to>\w+)|::",
    re.IGNORECASE,
)
"""`CAST(value AS type)` and `value::type`; without groups for values that are longer expressions."""

_TABLE: Final = r"""
\busing\s*\(\s*(?P<name>\w+)[^)]*\)?
    SQL++ joins with ON: write ON with both sides, as a.{name} = b.{name}
\bfull\s+(?:outer\s+)?join\b
    SQL++ has LEFT and RIGHT OUTER JOIN, and no full one: UNION ALL of a left join and of the rows of the
    other side without a partner
\bnatural\s+(?:\w+\s+)?join\b
    SQL++ has no NATURAL JOIN: write JOIN … ON with both sides, as a.id = b.id
\b(?:for\s+)?(?:system_time|system_version|timestamp|version)\s+as\s+of\b
\bfor\s+(?:system_time|timestamp|version)\b
\bat\s*\(\s*(?:version|timestamp)\b
    SQL++ reads the current snapshot only: Spark, DuckDB and PyIceberg read earlier ones, and 'limnos head'
    with --snapshot shows rows of one
\biif\s*\(
\bif\s*\(
    SQL++ writes CASE WHEN condition THEN one value ELSE another END
\bqualify\b
    SQL++ has no QUALIFY: select the window function as a field in a subquery, and write WHERE around it
\bfetch\s+(?:first|next)\s+(?P<name>\d+)
\bfetch\s+(?:first|next)\b
    SQL++ writes LIMIT {name} at the end, with OFFSET after it
\boffset\s+\d+\s+rows?\b
    SQL++ writes OFFSET with the number alone, after LIMIT
\bselect\s+top\s*\(?\s*(?P<name>\d+)
    SQL++ writes LIMIT {name} at the end of the query
\blimit\s+(?P<skip>\d+)\s*,\s*(?P<name>\d+)
    SQL++ writes LIMIT {name} OFFSET {skip}
BEGIN use\s+(?:database|schema|catalog|namespace|dataverse)\s+(?P<name>[\w.`]+)
    SQL++ writes USE {name}: a namespace, whose name begins below the catalog
BEGIN \\(?:d[tviS]*\+?\s+[\w.`]+|sf?\s+[\w.`]+)
BEGIN [.!](?:schema|columns|describe|indexes)\s+[\w.`]+
    'limnos show PATH' has the columns of a table; its PATH begins with the catalog, as {catalog}.sales.orders
BEGIN \\d[tviSmE]*\+?(?=\s|;|\Z)
BEGIN [.!](?:tables?|schema)\b
    'select d.DataverseName, d.DatasetName from Metadata.`Dataset` d' lists tables and views
BEGIN \\(?:l|dn)\+?
BEGIN [.!](?:databases|dbs|dbinfo)\b
    'select value d.DataverseName from Metadata.`Dataverse` d' lists the dataverses, which are the namespaces
BEGIN \\c(?:onnect)?\s+(?P<name>[\w.`]+)
    SQL++ writes USE {name}: a namespace, whose name begins below the catalog
BEGIN \\df\b
    'select value d.Name from Metadata.`Function` d' lists the functions of SQL++
BEGIN \\i[r]?\s+\S+
BEGIN [.!](?:read|run)\s+\S+
    'limnos sql -f FILE' runs the statements of a file
BEGIN \\(?:timing|x|a|t|pset|o|copy|g|w|e|du|dg|dp|z|conninfo|encoding|set|echo)\b
BEGIN [.!][a-z]+
    that is a command of another shell: \help in 'limnos sql' lists its own
BEGIN show\s+(?:databases|schemas|dataverses|namespaces)\b
    'select value d.DataverseName from Metadata.`Dataverse` d' lists the dataverses, which are the namespaces
BEGIN show\s+(?:all\s+|full\s+)?(?:tables|views|datasets)\b
\binformation_schema(?:\.\w+)?
\bsqlite_master\b
\bpg_catalog(?:\.\w+)?
    'select d.DataverseName, d.DatasetName from Metadata.`Dataset` d' lists tables and views
BEGIN show\s+columns\s+(?:from|in)(?:\s+[\w.`]+|\s*\Z)
BEGIN show\s+create\s+\w+(?:\s+[\w.`]+|\s*\Z)
BEGIN desc(?:ribe)?(?:\s+(?:table|extended|formatted))*(?:\s+[\w.`]+|\s*\Z)
    'limnos show PATH' has the columns of a table; its PATH begins with the catalog, as {catalog}.sales.orders
BEGIN show\s+\w+
    SQL++ has no SHOW: 'limnos show PATH' and 'limnos list' do that
\bilike\s+'?(?P<name>[^'\s]*)
    SQL++ has no ILIKE: write lower(x) LIKE and the pattern in small letters
\bdate\s+(?:'|\")(?P<name>[^'\"]*)
    SQL++ writes a date as date("{name}")
\b(?:timestamp|datetime)\s+(?:'|\")(?P<name>[^'\"]*)
    SQL++ writes a time stamp as datetime("2026-01-31T00:00:00")
\binterval\s+(?:'|\"|\d)
    SQL++ writes an interval as duration("P1D"), with ISO 8601's letters
\bdistinct\s+on\b
    SQL++ has no DISTINCT ON: number the rows with row_number() OVER (PARTITION BY … ORDER BY …) in a
    subquery, and keep number 1
\*\s*(?:exclude|except)\s*\(?\s*(?P<name>\w+)?
    SQL++ writes it after the variable and without parentheses, as in SELECT t.* EXCLUDE {name}
\binsert\s+into\s+[\w.`]+\s*(?:\([^)]*\)\s*)?values\b
    SQL++ inserts objects: INSERT INTO sales.orders ([{{"id": 4, "region": "EU"}}])
\binsert\s+overwrite\b
    SQL++ has INSERT INTO and UPSERT INTO; Spark overwrites tables
\bmerge\s+into\b
    SQL++ has UPSERT INTO for datasets with a primary key; Spark merges into tables
BEGIN truncate\b
    SQL++ has no TRUNCATE: write DELETE FROM, without WHERE
\bcreate\s+(?:or\s+replace\s+)?(?:temp(?:orary)?\s+|external\s+)?table\b
    SQL++ creates a type and a dataset with a primary key: CREATE TYPE sales.t AS {{id: bigint}}; CREATE
    DATASET sales.d(t) PRIMARY KEY id. Spark, DuckDB and PyIceberg create other tables
\bcreate\s+(?:schema|database|namespace)\b
    SQL++ writes CREATE DATAVERSE, which is a namespace
\bdrop\s+table\b
    SQL++ writes DROP DATASET, of datasets that it created; 'limnos delete PATH' deletes every table
\bdrop\s+(?:schema|database|namespace)\b
    SQL++ writes DROP DATAVERSE
\balter\s+table\b
    SQL++ changes no columns: Spark and PyIceberg do, and 'limnos rename' moves a table
\bread_(?:csv|parquet|json|json_auto|csv_auto)\b
\biceberg_scan\b
\bfrom\s+(?:'|\")[^'\"]*
    SQL++ reads tables by their names, and no files: DuckDB reads files, and LOAD DATASET fills a dataset
\bextract\s*\(\s*(?P<name>\w+)\s+from\b
    SQL++ writes get_{name}(x): get_year, get_month, get_day, get_hour, get_minute and get_second
\bgroup\s+by\s+all\b
    SQL++ has no GROUP BY ALL: name each expression after GROUP BY
BEGIN (?:grant|revoke)\s+\w+
    SQL++ grants nothing: 'limnos grant --preset reader PATH --to USER' does
BEGIN (?:begin|commit|rollback|start\s+transaction)\b
    Each statement of SQL++ is a transaction of its own: leave this out
\bwith\s+recursive\b\s*
    SQL++ has no recursive WITH
\b(?:pivot|unpivot)\b
    SQL++ has no PIVOT: write a sum(CASE WHEN …) for each column
\btablesample\b\s*
    SQL++ has no TABLESAMPLE: write LIMIT, or WHERE random() < 0.1
\blateral\s+(?:view\s+)?\w*
    SQL++ unnests an array of a row with UNNEST: FROM sales.orders o UNNEST o.items i
\bcopy\s+[\w.`]+\s+to\s+['\"]
    'limnos sql -c STATEMENT --results csv > FILE' writes a result to a file here
\bexplain\s+(?:analyze|extended|verbose|formatted|cost)\b\s*
    SQL++ writes EXPLAIN and the query
(?:\bfrom\s+|\A\s*)values\s*\(
    SQL++ writes an array of objects: FROM [{{"id": 1}}, {{"id": 2}}] v
BEGIN call\s+\w+
    SQL++ has no CALL: Spark runs procedures, and 'limnos maintenance run' maintains tables
BEGIN (?:analyze|optimize|vacuum|refresh)\s+\w+
    'limnos maintenance run PATH' maintains a table
\bdate_trunc\s*\(
    SQL++ has get_year, get_month and get_day, and interval_bin(x, datetime("2000-01-01T00:00:00"),
    year_month_duration("P1M"))
\b(?:string_agg|group_concat|listagg)\s*\(
    SQL++ writes string_join(array_agg(x), ", ")
BEGIN set\s+\w+\s*(?:=|to\b)
    SQL++ writes SET name "value"
"""
"""Patterns, a line each, and below them the advice for words that match one of them. `BEGIN ` is the begin of a
statement, and a word in braces is a group of the pattern.
"""


def _rules(table: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    """Return the patterns of a table with their advice."""
    rules: list[tuple[re.Pattern[str], str]] = []
    for block in re.findall(r"((?:^\S.*\n)+)((?:^ .*\n)+)", table, re.MULTILINE):
        pattern, advice = "|".join(block[0].split("\n")[:-1]), " ".join(block[1].split())
        rules.append((re.compile(pattern.replace("BEGIN ", _BEGIN), re.IGNORECASE), advice))
    return tuple(rules)


_RULES: Final = _rules(_TABLE)


def advice_at(text: str, offset: int, *, catalog: str) -> str:
    """Return how SQL++ writes the words at a position of a text, if they are another dialect's; empty if not."""
    begin = max(0, offset - SEARCHED_CHARS)
    end = offset + SEARCHED_CHARS
    for match in _CAST.finditer(text, begin, end):
        if match.start() <= offset <= match.end():
            return _conversion(match)
    for pattern, advice in _RULES:
        for match in pattern.finditer(text, begin, end):
            if match.start() <= offset <= match.end():
                words = {"name": "", "skip": "", "catalog": catalog}
                words |= {name: value for name, value in match.groupdict().items() if value is not None}
                return " ".join(advice.format_map(words).split())
    return ""


def _conversion(match: re.Match[str]) -> str:
    value, type_name = match["value"] or match["of"], match["type"] or match["to"] or ""
    function = _CONVERSIONS.get(type_name.lower())
    if value and function:
        return f"SQL++ converts by a function: {function}({value})"
    return "SQL++ converts by a function: to_bigint(x), to_double(x), to_string(x), to_boolean(x), date(x), datetime(x)"
