"""Functions of AsterixDB that are not supported, by subject, for error messages and the reference page.

May import nothing. Must not know the table of functions. Names are written as in the table, without aliases.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

ABSENT: Final[Mapping[str, frozenset[str]]] = {
    "shapes": frozenset(
        [
            "geometry_type",
            "st_area",
            "st_as_binary",
            "st_as_geojson",
            "st_as_text",
            "st_boundary",
            "st_buffer",
            "st_centroid",
            "st_collection_extract",
            "st_concave_hull",
            "st_contains",
            "st_convex_hull",
            "st_coord_dim",
            "st_crosses",
            "st_difference",
            "st_dimension",
            "st_disjoint",
            "st_distance",
            "st_distance_sphere",
            "st_distance_spheroid",
            "st_dwithin",
            "st_end_point",
            "st_envelope",
            "st_equals",
            "st_exterior_ring",
            "st_flip_coordinates",
            "st_geom_from_geojson",
            "st_geom_from_text",
            "st_geom_from_wkb",
            "st_geometry_n",
            "st_geometryn",
            "st_geometrytype",
            "st_interior_ring_n",
            "st_interiorringn",
            "st_intersection",
            "st_intersects",
            "st_is_closed",
            "st_is_collection",
            "st_is_empty",
            "st_is_ring",
            "st_is_simple",
            "st_is_valid",
            "st_is_valid_reason",
            "st_length",
            "st_line_from_multipoint",
            "st_line_merge",
            "st_m",
            "st_make_envelope",
            "st_make_point",
            "st_multi",
            "st_n_points",
            "st_n_rings",
            "st_normalize",
            "st_num_geometries",
            "st_num_interior_rings",
            "st_num_points",
            "st_overlaps",
            "st_point_n",
            "st_point_on_surface",
            "st_pointn",
            "st_polygonize",
            "st_relate",
            "st_relate_match",
            "st_reverse",
            "st_simplify",
            "st_simplify_preserve_topology",
            "st_srid",
            "st_start_point",
            "st_sym_difference",
            "st_touches",
            "st_transform",
            "st_unary_union",
            "st_union",
            "st_within",
            "st_x",
            "st_x_max",
            "st_x_min",
            "st_y",
            "st_y_max",
            "st_y_min",
            "st_z",
            "st_z_max",
            "st_z_min",
            "union_mbr",
        ]
    ),
    "time zones and calendars": frozenset(
        [
            "calendar_duration_from_date",
            "calendar_duration_from_datetime",
        ]
    ),
    "indexes of vectors": frozenset(["ann_distance", "vector_distance"]),
    "the size of stored values": frozenset(["serialized_size"]),
    "objects by position": frozenset(["array_star_field", "get_object_fields"]),
}


def absent_function_subject(name: str) -> str | None:
    """Return the subject of an unsupported function; None for a name that AsterixDB lacks, too."""
    return next((family for family, names in ABSENT.items() if name in names), None)
