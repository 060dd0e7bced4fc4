# SPDX-License-Identifier: Apache-2.0
"""Why cases do not pass, by kind: the pattern of an outcome's reason, and whether the difference is intended.

May import the standard library. It must not know outcomes. Cases of a kind with a decision are not meant to pass; other
kinds are open.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple


class Kind(NamedTuple):
    """A kind of reason: its name, the pattern of reasons, and the decision if its cases are not meant to pass.

    `cases` is a pattern of the cases to which it applies; without one, all.
    """

    name: str
    pattern: re.Pattern[str]
    decision: str = ""
    cases: re.Pattern[str] | None = None


def _kind(name: str, pattern: str, decision: str = "", *, cases: str = "") -> Kind:
    return Kind(
        name,
        re.compile(pattern, re.IGNORECASE | re.DOTALL),
        decision,
        re.compile(cases) if cases else None,
    )


_SELF: Final = "AsterixDB contradicts itself; see [the decisions](sqlpp-decisions.md)"
_VALUES: Final = r"^(expected |\d+ results for \d+)"

_DECIDED: Final = "each has a row in [the decisions](sqlpp-decisions.md)"
_DECIDED_CASES: Final = (
    r"temporal/(insert_from_ext_ds(_2)?|calendar_duration)",
    r"aggregate/count_distinct",
    r"csv/basic-types(#2)?",
    r"user-defined-functions/(bad-function-ddl-4|check-dependencies-1|single-line-definition|udf30)",
    r"load/(csv_0[567]|file-not-found|load_non-empty_index)",
    r"group-by/(listify(-2)?|grouping-sets-3-negative)",
    r"flwor/query-ASTERIXDB-(1463|1485)",
    r"objects/object_duplicate_fields",
    r"rightouterjoin/roj-03-negative",
    r"fulltext/stopwords-full-text-filter-1",
    r"misc/(serialized_size_fun|join-ASTERIXDB-2686)",
    r"view/(view-1|create-view-1|create-view-3-typed|create-view-6-typed-negative|create-view-7-foreign-key|drop-dataverse-2-negative)",
    r"aggregate-sql/sum/serial_sum_int64_overflow",
    r"misc/ensure_result_numeric_type",
    r"ddl/(analyze-dataset-with-indexes|invalid-index-name)",
    r"aggregate-sql/median",
    r"fuzzyjoin/basic-1_1_3",
    r"null-missing/print-ASTERIXDB-1885",
    r"open-closed/query-issue410",
    r"string/invalid-unicode",
    r"aggregate/serial_skewness_mixed",
    r"update-statements/all-cases",
    r"user-defined-functions/udf23",
    r"window/ntile_01",
    r"api/multiple-param-values",
    r"async-deferred-improved/async-exhausted-result",
    r"query_index/negative",
    r"function/transform/(negative|positive)",
    r"warnings/warnings-limit",
    r"window/percent_rank_01",
    r"big-object/big_object_(bulkload|groupby-2|join_low_memory_err)",
    r"types/(any-object|to_number_02|query-ASTERIXDB-2950)",
)

KINDS: Final = (
    _kind("kurtosis of groups", _VALUES, _SELF, cases=r"/serial_kurtosis_"),
    _kind(
        "offsets of times",
        _VALUES,
        _SELF,
        cases=r"^(constructor/(time_01|datetime_01|interval)$|scan/temp_types_01$|comparison/datetime_(order|tzeq)$|dapd/q2-7$|temporal/(accessors|accessors_interval|interval_bin|parse_02|time_functions|date_functions|datetime_functions)$)",
    ),
    _kind("joins by interval_ends", _VALUES, _SELF, cases=r"^temporal/interval_joins/interval_(ends|ended_by)$"),
    _kind("skewness of two values", _VALUES, _SELF, cases=r"^aggregate-sql/agg_null_rec(_1)?$"),
    _kind("edges of polygons", _VALUES, _SELF, cases=r"rtree-sidx-non-idxonly-02$"),
    _kind(
        "data that no step loads",
        _VALUES,
        "the suite has no step that loads these datasets",
        cases=r"^fulltext/fulltext-(index-)?0[456]$",
    ),
    _kind("NOT IN with NULL", _VALUES, _SELF, cases=r"^comparison/ASTERIXDB-3584_in_expr$"),
    _kind("positions of AT", _VALUES, _SELF, cases=r"^(flwor/at05|objects/object_transform)$"),
    _kind("rounding of infinite numbers", _VALUES, _SELF, cases=r"^numeric/round[23]$"),
    _kind("FROM over NULL", _VALUES, _SELF, cases=r"^null-missing/scan-collection$"),
    _kind("items of multisets", _VALUES, _SELF, cases=r"^array_fun/array_(except/\d+|union)$"),
    _kind(
        "points of a ring",
        _VALUES,
        "the ring of a union begins at another point; see [the decisions](sqlpp-decisions.md)",
        cases=r"^geojson/ogc-aliases$",
    ),
    _kind(
        "coordinate reference systems",
        r"",
        "not built in: they need PROJ; see [the decisions](sqlpp-decisions.md)",
        cases=r"^geojson/crs/",
    ),
    _kind(
        "one node",
        _VALUES,
        "`Metadata.Nodegroup` shows one node; see [the decisions](sqlpp-decisions.md)",
        cases=r"^misc/dataset_nodegroup$",
    ),
    _kind(
        "AsterixDB's buffer cache",
        r"^\.(metrics\.bufferCache|cachedPlan)",
        "the metrics of AsterixDB's buffer cache, which does not exist here",
        cases=r"^api/(cache-residency|request-param-validation-400-BAD)$",
    ),
    _kind(
        "asynchronous requests",
        r"",
        "a handle is answered before the statements are bound, for any statements; see [the"
        " decisions](sqlpp-decisions.md)",
        cases=r"^(async-deferred(-improved)?/(async-compilation-failed|async-not-supported|deferred)|api/multi-statement)$",
    ),
    _kind(
        "storage formats of datasets",
        r"",
        "datasets are Iceberg tables of Parquet files; AsterixDB's column format has no options here",
        cases=r"^column/(metadata|supported-types|validation|filter/ASTERIXDB-3499)$",
    ),
    _kind("two errors of one value", r"^another error", _SELF, cases=r"^aggregate(-sql)?/serial_\w+_mixed$"),
    _kind(
        "names of dataverses in requests",
        r"",
        "a string is one part of a name; see [decision"
        " 0121](../decisions/0121-the-dataverse-parameter-and-the-name-metadata.md)",
        cases=r"^api/request-dataverse$",
    ),
    _kind(
        "rows with equal keys of ORDER BY",
        _VALUES,
        "of rows with equal keys LIMIT keeps those that AsterixDB's storage has first; no order is promised",
        cases=r"^vector/distance-functions$",
    ),
    _kind(
        "vector indexes",
        r"",
        "vectors and their indexes are in Lance tables here",
        cases=r"^vector/(create-index|ann-distance)",
    ),
    _kind(
        "words of a JSON parser",
        r"^another error",
        "the words are those of AsterixDB's JSON library",
        cases=r"^json-parser/",
    ),
    _kind(
        "malformed durations",
        _VALUES,
        "a duration with other letters at its end is malformed: NULL, as the manual has it",
        cases=r"^constructor/duration_01$",
    ),
    _kind("random numbers with a seed", _VALUES, _SELF, cases=r"^misc/random$"),
    _kind("differences that are decided", r"", _DECIDED, cases=f"^({'|'.join(_DECIDED_CASES)})$"),
    _kind(
        "the time limit was reached",
        r"^time limit|^connection:",
        "open: the engine is slower than the limit on a shared machine, or the join compares all pairs",
    ),
    _kind(
        "the engine or the server failed",
        r"ASX3102|ASX0001|\bInternal|could not execute",
        "open: each is a defect, or an overflow that the engine reports without the function's name",
    ),
    _kind(
        "no error where one is expected",
        r"^no error",
        "open: options of storage (compression, merge policies) and types of closed fields in indexes are not checked",
    ),
    _kind(
        "another error than the expected one",
        r"^another error",
        "open: the statement is refused as expected, but with other words or another code",
    ),
    _kind("another status than the expected one", r"^status \d+"),
    _kind("results in another order", r"^order of results$"),
    _kind(
        "an array's items in another order",
        r"^order of an array's items$",
        "AsterixDB's order comes from its hashes and its storage; no order is promised",
    ),
    _kind("another number of results", r"^\d+ results for \d+", "open: each is a defect"),
    _kind(
        "other fields in a whole response",
        r"^\.",
        "open: plans and metrics of AsterixDB's jobs in a response; asynchronous requests end sooner here",
    ),
    _kind(
        "other values",
        r"^expected ",
        "open: order of equal keys (AsterixDB's comes from its storage), metadata of definitions, and defects",
    ),
    _kind(
        "shapes and spatial functions",
        r"functions about shapes|signature"
        r" (\S+\.)?`?(st_|spatial|point|line|circle|polygon|rectangle|get_(x|y|center|radius|points)\b|create_(point|line|circle|rect|poly))|datatype"
        r" with name (point|line|circle|polygon|rectangle|geometry|point3d)\b",
        "open",
    ),
    _kind("intervals", r"interval|overlap_bins", "open"),
    _kind(
        "full text and words",
        r"ftcontains|word_tokens|edit_distance_contains|full[- ]?text|gram_tokens|hashed_",
        "open: filters and configurations of full-text indexes",
    ),
    _kind("vectors and their indexes", r"vector|ann_distance", "open: vector indexes are Lance's here"),
    _kind(
        "a function that is not built in",
        r"ASX1081|Cannot find function",
        "open: functions about the declared type of an object, and AsterixDB's internal ones",
    ),
    _kind("private functions of AsterixDB", r"import-private"),
    _kind(
        "a syntax that is not read", r"ASX1001", "open: ANALYZE, TRANSFORM FUNCTION, full-text filters, vector indexes"
    ),
    _kind(
        "a file's format",
        r"ASX30\d\d|Unknown format",
        "open: errors of CSV are strict here; tab-separated text is not read",
    ),
    _kind(
        "a type or field that is not taken",
        r"ASX1082|ASX0006|ASX1051|ASX1092|datatype",
        "open: keys in nested fields of open types, AnyObject, and the type `geometry`",
    ),
    _kind(
        "statements or options that are refused",
        r"not supported|Unknown|ASX1079|ASX1080|ASX1082|ASX1093",
        "open: views with a type, the parameter sql-compat",
    ),
    _kind("other refusals", r"", "open"),
)


def kind_of(reason: str, case: str = "") -> Kind:
    """Return the kind of a case's reason."""
    kinds = (kind for kind in KINDS if kind.cases is None or kind.cases.search(case))
    return next(kind for kind in kinds if kind.pattern.search(reason))
