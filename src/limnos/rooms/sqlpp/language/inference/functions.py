# SPDX-License-Identifier: Apache-2.0
"""Static types of function calls: for each built-in function the type inference rule of AsterixDB's compiler.

Must not know expressions: a rule gets the arguments' types. A function without a rule has the type `any`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from limnos.rooms.sqlpp.language.inference.operations import (
    BOOLEAN,
    power_type,
    rounded_number,
    same_number,
    sum_type,
    unknown_first,
    with_unknowns,
)
from limnos.rooms.sqlpp.language.inference.static_types import (
    ANY,
    NULL_TYPE,
    NUMBERS,
    OBJECT,
    WHOLE,
    StaticType,
    array_of,
    bag_of,
    common_type,
    type_of_items,
)

Rule = Callable[[Sequence[StaticType]], StaticType]
DOUBLE: Final = StaticType(kind="double")
_ANY_ARRAY: Final = array_of(ANY)
_ANY_BAG: Final = bag_of(ANY)

_KINDS: Final[Mapping[str, str]] = {
    "boolean": "boolean is_array is_atomic is_binary is_boolean is_circle is_date is_datetime is_duration is_interval "
    "is_line is_multiset is_nan is_number is_object is_point is_point3d is_polygon is_rectangle is_spatial is_string "
    "is_temporal is_time is_uuid to_boolean interval_after interval_before interval_covered_by interval_covers "
    "interval_ended_by interval_ends interval_meets interval_met_by interval_overlapped_by interval_overlapping "
    "interval_overlaps interval_started_by interval_starts spatial_intersect day_time_duration_greater_than "
    "day_time_duration_less_than duration_equal year_month_duration_greater_than year_month_duration_less_than "
    "edit_distance_list_is_filterable edit_distance_string_is_filterable array_contains ftcontains bittest "
    "st_contains st_crosses st_disjoint st_dwithin st_equals st_intersects st_is_closed st_is_collection st_is_empty "
    "st_is_ring st_is_simple st_is_valid st_overlaps st_relate st_relate_match st_touches st_within",
    "tinyint": "tinyint",
    "smallint": "smallint",
    "integer": "integer array_position array_binary_search bitcount",
    "bigint": "bigint array_length binary_length bitand bitclear bitnot bitor bitset bitshift bitxor day_of_week "
    "day_of_year edit_distance find_binary from_base get_day get_hour get_millisecond get_minute get_month get_second "
    "get_year months_from_year_month_duration ms_from_day_time_duration object_length prefix_len_jaccard "
    "quarter_of_year st_coord_dim st_dimension st_n_points st_n_rings st_num_geometries st_num_interior_rings "
    "st_num_points st_srid unix_time_from_date_in_days unix_time_from_date_in_ms unix_time_from_datetime_in_ms "
    "unix_time_from_datetime_in_secs unix_time_from_time_in_ms week_of_year",
    "float": "float similarity_jaccard similarity_jaccard_prefix",
    "double": "double e pi random cosine_similarity dot_product euclidean_distance euclidean_squared_distance "
    "get_radius get_x get_y spatial_area spatial_distance st_area st_distance st_distance_sphere st_length st_m st_x "
    "st_x_max st_x_min st_y st_y_max st_y_min st_z st_z_max st_z_min",
    "string": "adjust_datetime_for_timezone adjust_time_for_timezone codepoint_to_string concat encode_dataverse_name "
    "geometry_type lpad print_binary print_date print_datetime print_time repeat rpad sha1_base64 sha1_hex "
    "st_as_geojson st_as_text st_geometrytype st_is_valid_reason string_concat string_join substr substr1 to_string",
    "binary": "base64 binary_concat hex parse_binary st_as_binary sub_binary",
    "uuid": "uuid",
    "date": "date date_from_unix_time_in_days get_date_from_datetime get_interval_end_date get_interval_start_date "
    "parse_date",
    "time": "time time_from_unix_time_in_ms get_time_from_datetime get_interval_end_time get_interval_start_time "
    "parse_time",
    "datetime": "datetime datetime_from_date_time datetime_from_unix_time_in_ms datetime_from_unix_time_in_secs "
    "get_interval_end_datetime get_interval_start_datetime parse_datetime",
    "duration": "duration duration_from_months duration_from_ms",
    "year-month-duration": "year_month_duration get_year_month_duration",
    "day-time-duration": "day_time_duration get_day_time_duration duration_from_interval",
    "interval": "interval interval_bin interval_start_from_date interval_start_from_datetime "
    "interval_start_from_time get_overlapping_interval",
    "point": "point create_point get_center",
    "point3d": "point3d",
    "line": "line create_line",
    "rectangle": "rectangle create_rectangle spatial_cell",
    "circle": "circle create_circle",
    "polygon": "polygon create_polygon",
    "geometry": "st_boundary st_buffer st_centroid st_collection_extract st_concave_hull st_convex_hull st_difference "
    "st_end_point st_envelope st_exterior_ring st_flip_coordinates st_geom_from_geojson st_geom_from_text "
    "st_geom_from_wkb st_geometry_n st_geometryn st_interior_ring_n st_interiorringn st_intersection "
    "st_line_from_multipoint st_line_merge st_make_envelope st_make_point st_multi st_normalize st_point_n "
    "st_point_on_surface st_pointn st_polygonize st_reverse st_simplify st_simplify_preserve_topology st_start_point "
    "st_sym_difference st_unary_union st_union strict_st_union",
}
"""The functions of each kind of result, regardless of the kinds of their arguments."""
_OF_STRINGS: Final[Mapping[str, str]] = {
    "boolean": "contains ends_with regexp_contains regexp_like starts_with string_equal",
    "bigint": "length",
    "integer": "position position1 regexp_position regexp_position1",
    "string": "initcap lower ltrim regexp_replace replace reverse rtrim substring_after substring_before trim upper",
}
"""The functions on strings, by the kind of their result; for arguments of other kinds the result is NULL."""
_CONSTRUCTORS: Final = frozenset(
    {
        "boolean",
        "tinyint",
        "smallint",
        "integer",
        "bigint",
        "float",
        "double",
        "date",
        "time",
        "datetime",
        "duration",
        "year_month_duration",
        "day_time_duration",
        "uuid",
        "to_string",
        "substr",
        "substr1",
        "repeat",
        "lpad",
        "rpad",
        "sha1_hex",
        "sha1_base64",
        "hex",
        "base64",
        "object_length",
        "from_base",
        "week_of_year",
        "day_of_week",
        "array_binary_search",
    }
)
"""Functions whose result may be NULL for arguments that are not NULL."""


def call_type(function: str, types: Sequence[StaticType]) -> StaticType:
    """Return the type of a function's result for arguments of these types."""
    rule = _OWN_RULES.get(function)
    if rule is not None:
        return rule(types)
    kind = _KIND_OF.get(function)
    rule = _STRICT_RULES.get(function)
    if kind is None and rule is None:
        return ANY
    unknown = unknown_first(types)
    if unknown is not None:
        return unknown
    if rule is not None:
        return with_unknowns(rule([type_.without_absence() for type_ in types]), types)
    is_null = function in _CONSTRUCTORS and [type_.kind for type_ in types] != [kind]
    return with_unknowns(StaticType(kind=kind or "any", null=is_null), types)


def aggregate_type(function: str, item: StaticType) -> StaticType:
    """Return the type of an aggregate's result over values of a type."""
    name = function.removeprefix("array_").removeprefix("strict_")
    if name in ("count", "countn"):
        return StaticType(kind="bigint")
    if name == "sum":
        return sum_type(item)
    if name in ("min", "max"):
        return NULL_TYPE if item.kind == "object" or item.is_collection else item.optional()
    return array_of(item) if name in ("array_agg", "agg") else DOUBLE.optional(missing=False)


def window_type(function: str, types: Sequence[StaticType]) -> StaticType:
    """Return the type of a window function's result."""
    if function in ("row_number", "rank", "dense_rank", "ntile"):
        return StaticType(kind="bigint")
    if function in ("percent_rank", "cume_dist", "ratio_to_report"):
        return DOUBLE
    if function in ("first_value", "last_value", "nth_value"):
        return types[0].optional()
    if function in ("lag", "lead"):
        return common_type([types[0], *types[2:]]).optional()
    return aggregate_type(function, types[0] if types else ANY)


def _scalar_aggregate(function: str) -> Rule:
    def rule(types: Sequence[StaticType]) -> StaticType:
        name = function.removeprefix("array_").removeprefix("strict_")
        if not types[0].is_collection and name in ("sum", "min", "max"):
            return ANY
        return aggregate_type(function, type_of_items(types[0]))

    return rule


def _string_rule(kind: StaticType) -> Rule:
    return lambda types: kind if all(type_.kind in ("string", "any") for type_ in types) else NULL_TYPE


def _double(types: Sequence[StaticType]) -> StaticType:
    return DOUBLE if all(type_.kind in NUMBERS or type_.kind == "any" for type_ in types) else NULL_TYPE


def _same_collection_type(types: Sequence[StaticType]) -> StaticType:
    return types[0].optional() if types[0].is_collection else ANY


def _any_item_collection(types: Sequence[StaticType]) -> StaticType:
    """Return an array or a multiset of any items, like the first argument; `any` if that is not a collection."""
    kinds = {"array": _ANY_ARRAY, "multiset": _ANY_BAG}
    return kinds[types[0].kind].optional() if types[0].kind in kinds else ANY


def _any_item_last(types: Sequence[StaticType]) -> StaticType:
    return _any_item_collection(types[-1:])


def _range(types: Sequence[StaticType]) -> StaticType:
    if all(type_.kind in WHOLE for type_ in types):
        return array_of(StaticType(kind="bigint"))
    return array_of(DOUBLE).optional(missing=False) if all(type_.kind in NUMBERS for type_ in types) else ANY


def _array(types: Sequence[StaticType]) -> StaticType:
    return array_of(type_of_items(types[0]) if types[0].is_collection else types[0])


def _object(types: Sequence[StaticType]) -> StaticType:
    return types[0] if types[0].kind == "object" else OBJECT


def _number(types: Sequence[StaticType]) -> StaticType:
    return StaticType(kind="bigint") if types[0].kind == "boolean" else types[0] if types[0].kind in NUMBERS else ANY


def _switch(types: Sequence[StaticType]) -> StaticType:
    branches = list(types[2::2])
    branches.append(types[-1] if len(types) % 2 == 0 else NULL_TYPE)
    return common_type(branches)


def _first_known(*, null: bool, missing: bool) -> Rule:
    """Return the rule of a function that returns its first argument other than NULL (`null`) or MISSING (`missing`)."""

    def rule(types: Sequence[StaticType]) -> StaticType:
        met: list[StaticType] = []
        left = StaticType(kind="any")
        for type_ in types:
            if (null and type_.kind == "null") or (missing and type_.kind == "missing"):
                continue
            met.append(type_.without_absence())
            left = StaticType(kind="any", null=left.null or type_.null, missing=left.missing or type_.missing)
            if not ((null and type_.null) or (missing and type_.missing)):
                result = common_type(met)
                keeps_null, keeps_missing = left.null and not null, left.missing and not missing
                return (
                    result
                    if len(met) > 1 and result.kind == "any"
                    else result.optional(null=keeps_null, missing=keeps_missing)
                )
        return common_type(met).optional() if met else NULL_TYPE

    return rule


def _if_not_number(types: Sequence[StaticType]) -> StaticType:
    kinds = {type_.kind for type_ in types}
    if len(kinds) > 1:
        return ANY
    (kind,) = kinds
    return types[0] if kind == "any" or kind in NUMBERS else NULL_TYPE


def _double_if(types: Sequence[StaticType]) -> StaticType:
    return types[0] if types[0].kind == "double" else ANY


def _extreme(types: Sequence[StaticType]) -> StaticType:
    return common_type(types).optional()


_KIND_OF: Final[Mapping[str, str]] = {name: kind for kind, names in _KINDS.items() for name in names.split()}
_DOUBLES: Final = "acos asin atan atan2 cos cosh degrees exp ln log radians sin sinh sqrt tan tanh"
_AGGREGATES: Final = "avg count countn kurtosis max median min skewness stddev_pop stddev_samp sum var_pop var_samp"
_STRICT_RULES: Final[Mapping[str, Rule]] = {
    **{name: _string_rule(StaticType(kind=kind)) for kind, names in _OF_STRINGS.items() for name in names.split()},
    **dict.fromkeys(("regexp_matches", "regexp_split", "split"), _string_rule(array_of(StaticType(kind="string")))),
    "string_to_codepoint": _string_rule(array_of(StaticType(kind="bigint"))),
    **dict.fromkeys(_DOUBLES.split(), _double),
    "sign": lambda types: StaticType(kind="tinyint") if _double(types) is DOUBLE else NULL_TYPE,
    **dict.fromkeys(
        ("object_names", "decode_dataverse_name", "word_tokens", "gram_tokens"),
        lambda _: array_of(StaticType(kind="string")).optional(missing=False),
    ),
    **dict.fromkeys(
        (
            "object_pairs",
            "pairs",
            "object_values",
            "get_object_fields",
            "edit_distance_check",
            "edit_distance_contains",
            "similarity_jaccard_check",
            "similarity_jaccard_prefix_check",
        ),
        lambda _: _ANY_ARRAY,
    ),
    **dict.fromkeys(
        ("counthashed_gram_tokens", "counthashed_word_tokens", "hashed_gram_tokens", "hashed_word_tokens"),
        lambda _: array_of(StaticType(kind="integer")),
    ),
    "get_points": lambda _: array_of(StaticType(kind="point")),
    "overlap_bins": lambda _: array_of(StaticType(kind="interval")),
    **dict.fromkeys(("array_remove", "array_slice", "array_move", "array_swap"), _same_collection_type),
    **dict.fromkeys(
        ("array_reverse", "array_sort", "array_distinct"), lambda types: types[0] if types[0].is_collection else ANY
    ),
    **dict.fromkeys(
        ("array_union", "array_intersect", "array_concat", "array_symdiff", "array_symdiffn", "array_flatten"),
        _any_item_collection,
    ),
    "array_except": lambda types: types[0] if types[0].is_collection or types[0].kind == "any" else NULL_TYPE,
    "array_put": _any_item_collection,
    "array_repeat": lambda types: array_of(types[0]).optional(missing=False),
    "array_ifnull": lambda types: type_of_items(types[0]).optional(missing=False),
    "array_range": _range,
    "to_array": _array,
    "to_multiset": lambda types: bag_of(type_of_items(_array(types))),
    "to_object": _object,
    "to_number": _number,
}
"""Rules of strict functions. A rule receives the types of the arguments without NULL and MISSING."""
_OWN_RULES: Final[Mapping[str, Rule]] = {
    **{name: _scalar_aggregate(name) for each in _AGGREGATES.split() for name in (f"array_{each}", f"strict_{each}")},
    "array_array_agg": _scalar_aggregate("array_array_agg"),
    "get_type": lambda _: StaticType(kind="string"),
    **dict.fromkeys(("is_missing", "is_unknown", "is_null"), lambda _: BOOLEAN),
    **dict.fromkeys(("like", "deep_equal"), lambda _: BOOLEAN.optional()),
    **dict.fromkeys(("abs", "ceil", "floor"), same_number),
    **dict.fromkeys(("round_half_to_even", "round_half_up", "trunc"), same_number),
    "round": rounded_number,
    "range": lambda _: array_of(StaticType(kind="bigint")),
    "power": power_type,
    **dict.fromkeys(("array_append", "array_insert", "array_replace"), _any_item_collection),
    "array_prepend": _any_item_last,
    "if_missing": _first_known(null=False, missing=True),
    "if_null": _first_known(null=True, missing=False),
    **dict.fromkeys(("if_missing_or_null", "nvl"), _first_known(null=True, missing=True)),
    "nvl2": lambda types: common_type(types[1:]),
    "missing_if": lambda types: types[0].optional(null=False),
    "null_if": lambda types: types[0].optional(missing=False),
    **dict.fromkeys(("if_inf", "if_nan", "if_nan_or_inf"), _if_not_number),
    **dict.fromkeys(("nan_if", "neginf_if", "posinf_if"), _double_if),
    "switch_case": _switch,
    **dict.fromkeys(("greatest", "least"), _extreme),
    **dict.fromkeys(
        (
            "object_concat",
            "object_replace",
            "array_star",
            "object_add",
            "object_put",
            "object_remove",
            "object_rename",
            "object_merge",
            "object_add_fields",
            "object_remove_fields",
            "closed_object_constructor",
        ),
        lambda _: OBJECT.optional(),
    ),
    "ordered_list_constructor": lambda types: list_type("array", types),
    "unordered_list_constructor": lambda types: list_type("multiset", types),
}
"""Rules of functions that are not strict."""


def list_type(kind: str, types: Sequence[StaticType]) -> StaticType:
    """Return the type of an array or multiset constructor; if the items have several types, their type is `any`."""
    item = types[0] if types and all(type_ == types[0] for type_ in types) else ANY
    return array_of(item) if kind == "array" else bag_of(item)
