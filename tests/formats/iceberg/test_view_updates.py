# SPDX-License-Identifier: Apache-2.0
"""Replacing views: version ids, reuse, history, dialects, requirements and refusals."""

from __future__ import annotations

import copy

import pytest

from limnos.formats.iceberg import view_metadata, view_updates
from limnos.formats.iceberg.json_types import Json
from limnos.formats.iceberg.metadata import rows
from limnos.model.errors import BadRequest, CommitConflict

UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"
FIELDS = [{"id": 3, "name": "id", "required": True, "type": "long"}]
SCHEMA: Json = {"type": "struct", "schema-id": 7, "fields": FIELDS}
OTHER: Json = {"type": "struct", "fields": [{"id": 4, "name": "day", "required": False, "type": "date"}]}
LATER = 5_000


def version(sql: str = "select 1", *, dialect: str = "spark", at: int = 1_000, schema: int = 0) -> Json:
    """Return a version with one text."""
    return {
        "version-id": 9,
        "timestamp-ms": at,
        "schema-id": schema,
        "summary": {},
        "default-namespace": ["a", "b"],
        "representations": [{"type": "sql", "dialect": dialect, "sql": sql}],
    }


NULL_DEFAULT: Json = {"id": 1, "name": "a", "type": "long", "required": False, "write-default": None}


def fresh() -> Json:
    """Return a new view."""
    return view_updates.new_view(
        uuid=UUID, location="s3://b/v/", schema=SCHEMA, version=version(), properties=None, now_ms=1
    )


def added(*versions: Json) -> list[object]:
    """Return updates that add versions, each of which becomes current."""
    changes: list[object] = []
    for one in versions:
        changes += [
            {"action": "add-view-version", "view-version": one},
            {"action": "set-current-view-version", "view-version-id": -1},
        ]
    return changes


def ids(metadata: Json) -> tuple[object, list[object], list[object]]:
    """Return the ids of the current version, the versions and the log."""
    rows = [[row["version-id"] for row in metadata[key]] for key in ("versions", "version-log")]  # type: ignore[attr-defined]
    return metadata["current-version-id"], rows[0], rows[1]


def test_new_view_is_numbered_afresh() -> None:
    """In a new view the first version is 1 and its schema 0, whatever ids the request has. Field ids and the caller's
    time are kept.
    """
    metadata = fresh()

    assert ids(metadata) == (1, [1], [1])
    assert metadata["schemas"] == [{"type": "struct", "schema-id": 0, "fields": FIELDS}]
    assert metadata["versions"] == [{**version(), "version-id": 1, "schema-id": 0}]
    assert metadata["version-log"] == [{"timestamp-ms": 1_000, "version-id": 1}]
    assert (metadata["location"], metadata["view-uuid"], metadata["format-version"]) == ("s3://b/v", UUID, 1)
    view_metadata.check_registrable(metadata)


def test_version_with_future_time_is_refused() -> None:
    """A view version may be dated in the future only as far as a snapshot may. The same limit applies to the log of a
    registered view.
    """
    accepted_view = view_updates.apply(fresh(), added(version("select 2", at=LATER + 30_000)), now_ms=LATER)
    with pytest.raises(BadRequest, match=f"Invalid view version timestamp {LATER + 30_001}: 1 s later"):
        view_updates.apply(fresh(), added(version("select 2", at=LATER + 30_001)), now_ms=LATER)
    with pytest.raises(BadRequest, match="register the view after that time"):
        view_metadata.check_registrable(fresh(), latest_ms=999)

    assert accepted_view["current-version-id"] == 2


def test_equal_version_keeps_its_id() -> None:
    """A version with equal content is reused, whatever its id and time, and the replace changes nothing."""
    base = fresh()

    assert view_updates.apply(base, added(version(at=3_000)), now_ms=LATER) is base


def test_older_version_becomes_current_again() -> None:
    """Returning to an older version is logged with the time of the change, not with that of the version."""
    base = view_updates.apply(fresh(), added(version("select 2", at=2_000)), now_ms=LATER)

    back = view_updates.apply(base, added(version(at=3_000)), now_ms=LATER)

    assert ids(back) == (1, [1, 2], [1, 2, 1])
    assert back["version-log"][-1] == {"timestamp-ms": LATER, "version-id": 1}  # type: ignore[index]


def test_last_added_is_minus_one() -> None:
    """-1 refers to the schema, or the version, that this request added last. Without one it is refused."""
    updates: list[object] = [{"action": "add-schema", "schema": OTHER}, *added(version("select 2", schema=-1))]

    new = view_updates.apply(fresh(), updates, now_ms=LATER)

    assert [row["schema-id"] for row in new["schemas"]] == [0, 1]  # type: ignore[attr-defined]
    assert view_metadata.current_version(new)["schema-id"] == 1
    for lone in (added(version(schema=-1)), [{"action": "set-current-view-version", "view-version-id": -1}]):
        with pytest.raises(BadRequest, match="Cannot set last added"):
            view_updates.apply(fresh(), lone, now_ms=LATER)


def test_equal_schema_keeps_its_id() -> None:
    """An equal existing schema is reused."""
    updates: list[object] = [{"action": "add-schema", "schema": SCHEMA}, *added(version("select 2", schema=-1))]

    new = view_updates.apply(fresh(), updates, now_ms=LATER)

    assert len(new["schemas"]) == 1  # type: ignore[arg-type]
    assert view_metadata.current_version(new)["schema-id"] == 0


def test_history_is_trimmed() -> None:
    """The view keeps as many versions as the property says, 10 by default. The log begins after its last entry of a
    removed version.
    """
    trimmed_view, tenfold = fresh(), fresh()
    trimmed_view["properties"] = {"version.history.num-entries": "2"}
    for number in range(2, 14):
        text = version(f"select {number}")
        trimmed_view = view_updates.apply(trimmed_view, added(text), now_ms=LATER)
        tenfold = view_updates.apply(tenfold, added(text), now_ms=LATER)

    assert ids(trimmed_view) == (13, [12, 13], [12, 13])
    assert ids(tenfold) == (13, list(range(4, 14)), list(range(4, 14)))


def test_versions_of_same_request_are_not_trimmed() -> None:
    """Versions that a single request adds are not trimmed by that request."""
    base = fresh()
    base["properties"] = {"version.history.num-entries": "1"}

    new = view_updates.apply(base, added(*[version(f"select {n}") for n in (2, 3, 4)]), now_ms=LATER)

    assert ids(new) == (4, [2, 3, 4], [4])


@pytest.mark.parametrize("size", ["0", "-1", "many", "1001"])
def test_history_has_bounds(size: str) -> None:
    """A history size of zero, or one above the limit, is refused."""
    update = {"action": "set-properties", "updates": {"version.history.num-entries": size}}

    with pytest.raises(BadRequest, match="must be positive but was"):
        view_updates.apply(fresh(), [update], now_ms=LATER)


def test_dropping_dialect_is_refused_unless_allowed() -> None:
    """A replace that drops a dialect is refused unless the property allows it. Dialect names are case-insensitive."""
    updates = added(version("select 2", dialect="trino"))

    with pytest.raises(BadRequest, match="loss of view dialects"):
        view_updates.apply(fresh(), updates, now_ms=LATER)
    allow = {"action": "set-properties", "updates": {"replace.drop-dialect.allowed": "true"}}
    assert view_updates.apply(fresh(), [allow, *updates], now_ms=LATER)["current-version-id"] == 2
    assert view_updates.apply(fresh(), added(version("select 2", dialect="SPARK")), now_ms=LATER)["versions"]


def test_base_is_never_changed() -> None:
    """No kind of update modifies the base."""
    base = fresh()
    before = copy.deepcopy(base)
    updates: list[object] = [
        {"action": "assign-uuid", "uuid": UUID.upper()},
        {"action": "upgrade-format-version", "format-version": 1},
        {"action": "add-schema", "schema": OTHER},
        {"action": "set-location", "location": "s3://b/w/"},
        {"action": "set-properties", "updates": {"k": "v"}},
        {"action": "remove-properties", "removals": ["k", "missing"]},
        *added(version("select 2")),
    ]

    new = view_updates.apply(base, updates, now_ms=LATER)

    assert base == before
    assert (new["location"], new["properties"]) == ("s3://b/w", {})
    assert {update["action"] for update in updates} == set(view_updates.ACTIONS)  # type: ignore[index]


@pytest.mark.parametrize(
    "update, word",
    [
        ({"action": "add-snapshot"}, "Unknown update action 'add-snapshot' for a view"),
        ({}, "'action'"),
        ({"action": "assign-uuid", "uuid": UUID.replace("9", "8")}, "Cannot reassign uuid"),
        ({"action": "upgrade-format-version", "format-version": 2}, "unsupported format version: v2"),
        ({"action": "upgrade-format-version", "format-version": 0}, "Cannot downgrade v1 view to v0"),
        ({"action": "set-current-view-version", "view-version-id": 5}, "unknown version: 5"),
        ({"action": "add-view-version", "view-version": version(schema=5)}, "unknown schema: 5"),
        ({"action": "add-view-version", "view-version": {**version(), "representations": []}}, "no representation"),
        ({"action": "add-view-version", "view-version": {**version(), "default-namespace": None}}, "default-namespace"),
        ({"action": "add-view-version", "view-version": version("")}, "'sql'"),
        ({"action": "set-location", "location": ""}, "'location'"),
        ({"action": "set-properties", "updates": {"write.metadata.compression-codec": "zip"}}, "none or gzip"),
    ],
)
def test_invalid_update_is_refused(update: object, word: str) -> None:
    """An invalid update is refused, and the message says what is wrong."""
    with pytest.raises(BadRequest) as refused:
        view_updates.apply(fresh(), [update], now_ms=LATER)

    assert word in str(refused.value)


def test_two_texts_for_one_dialect_are_refused() -> None:
    """Two texts for one dialect are refused; dialect names are case-insensitive."""
    twice = version(dialect="Trino")
    twice["representations"] = [*twice["representations"], {"type": "sql", "dialect": "trino", "sql": "x"}]  # type: ignore[misc]

    with pytest.raises(BadRequest, match="Invalid view version: Cannot add multiple queries for dialect trino"):
        view_updates.apply(fresh(), added(twice), now_ms=LATER)


def test_only_uuid_requirement_is_supported() -> None:
    """A requirement on the view's uuid is compared case-insensitively. Any other requirement is refused as unknown."""
    base = fresh()

    view_updates.check(base, [{"type": "assert-view-uuid", "uuid": UUID.upper()}])
    with pytest.raises(CommitConflict, match="view UUID does not match"):
        view_updates.check(base, [{"type": "assert-view-uuid", "uuid": "other"}])
    with pytest.raises(BadRequest, match="Unknown requirement type 'assert-create' for a view"):
        view_updates.check(base, [{"type": "assert-create"}])


@pytest.mark.parametrize(
    "change, word",
    [
        ({"table-uuid": UUID}, "of a table"),
        ({"format-version": 2}, "format-version 2"),
        ({"view-uuid": "x"}, "not a UUID"),
        ({"current-version-id": 4}, "none of the versions"),
        ({"schemas": []}, "none of the schemas"),
        ({"versions": None}, "'versions'"),
        ({"location": None}, "'location'"),
        ({"version-log": [{}]}, "timestamp-ms"),
        ({"versions": [{"version-id": 1, "schema-id": 0, "summary": None}]}, "'summary' is required"),
        ({"schemas": [{**SCHEMA, "schema-id": 0, "fields": [NULL_DEFAULT]}]}, "write-default is null"),
        ({"schemas": [{**SCHEMA, "schema-id": 0}] * 2}, "two have the same schema-id"),
        ({"versions": [*rows(fresh(), "versions")] * 2}, "two have the same version-id"),
        (
            {
                "versions": [
                    *rows(fresh(), "versions"),
                    {**rows(fresh(), "versions")[0], "version-id": 7, "schema-id": 9},
                ]
            },
            "version 7 has schema 9, which is missing",
        ),
        ({"properties": None}, "properties is null"),
        ({"version-log": [{"timestamp-ms": 5, "version-id": 2**31}]}, "'version-id' must be between 0"),
    ],
)
def test_unusable_metadata_is_not_registrable(change: Json, word: str) -> None:
    """View metadata that the server could not serve or replace is refused, and the message says what is wrong."""
    with pytest.raises(BadRequest) as refused:
        view_metadata.check_registrable({**fresh(), **change})

    assert word in str(refused.value)
