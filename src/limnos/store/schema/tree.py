# SPDX-License-Identifier: Apache-2.0
"""Tables of the tree and its objects: clocks and the change feed, names, owners, documents, versions, trash.

Must not know statements.
"""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Index, SmallInteger, false

from limnos.store.schema.base import LIVE, MADE_BY, Id, live_index, partial_index, table

store = table(
    "store",
    Column("one", SmallInteger, primary_key=True),
    "epoch bigint, format_version integer, next_id bigint, separator text?, authentication text?",
)

clock = table("clock", "zone bigint*, revision bigint, access_revision bigint, pruned_to bigint")

change = table(
    "change",
    "zone bigint*, revision bigint*, ordinal integer*, operation text, kind smallint, node_id bigint, "
    "name_space text, old_parent bigint?, old_name name?, new_parent bigint?, new_name name?, owner_id bigint?, "
    "actor text, request_id text, at bigint, payload text?",
    sqlite_with_rowid=False,
)

node = table(
    "node",
    "id bigint*, zone bigint, parent_id bigint, kind smallint, name_space text, name name, format text, "
    "implicit boolean",
    MADE_BY,
    "revision bigint, deleted bigint, record binary, folded name?",
)
"""`folded` is the name in the form that searches compare; NULL in rows that an older release wrote."""
live_index("node_name", node, "parent_id", "name_space", "name")
node_folded = partial_index("node_folded", node, "zone", "folded", where=LIVE)
node_namespace = partial_index("node_namespace", node, "zone", "parent_id", where=f"kind = 3 AND {LIVE}")
"""The namespaces of a zone, of which there are far fewer than other objects. 3 is the code of `Kind.NAMESPACE`."""
node_unfolded = partial_index("node_unfolded", node, "id", where="folded IS NULL")

owner = table("owner", "object_id bigint*, principal_id bigint")
owner_principal = Index("owner_principal_object", owner.c.principal_id, owner.c.object_id)

tag_object = table("tag_object", "object_id bigint*, tag_id bigint*", sqlite_with_rowid=False)
Index("tag_object_tag", tag_object.c.tag_id, tag_object.c.object_id)

policy_object = table(
    "policy_object",
    "object_id bigint*, policy_id bigint*",
    Column("attached_by", Id, nullable=False, server_default="0"),
    sqlite_with_rowid=False,
)
"""`attached_by` is the user who attached the policy; 0 if unknown."""
Index("policy_object_policy", policy_object.c.policy_id)

column_attachment = table(
    "column_attachment",
    "object_id bigint*, field_id bigint*, attached_id bigint*, kind smallint",
    sqlite_with_rowid=False,
)
"""Tags and policies on columns: a table, and the field id of the table's format."""
Index("column_attachment_attached", column_attachment.c.attached_id, column_attachment.c.object_id)

tag_value = table(
    "tag_value",
    "object_id bigint*, field_id bigint*, tag_id bigint*, value text*, position integer",
    sqlite_with_rowid=False,
)
"""The values of a tag on an object (field 0) or on a column, in addition to the row that attaches it."""
Index("tag_value_value", tag_value.c.tag_id, tag_value.c.value)

document = table(
    "document",
    "node_id bigint*, version bigint, uuid text, location name, metadata_location name, body binary, digest bigint?",
)
"""`digest` tells whether the row is what was written (`documents.digest_of`); NULL in rows of an older release."""
Index("document_location", document.c.location, unique=True)
document_uuid = Index("document_uuid", document.c.uuid)
document_undigested = partial_index(
    "document_undigested",
    document,
    "node_id",
    where="digest IS NULL OR digest >> 32 <> version % 2147483648 - 2147483648",
)
"""Documents without a digest of their version, with the condition of `documents.WITHOUT_DIGEST`."""

setting_name = table("setting_name", "metalake_id bigint*, name name")
Index("setting_name_name", setting_name.c.name)

protection = table("protection", "node_id bigint*, zone bigint, below boolean, set_by text, set_at bigint")
Index("protection_zone", protection.c.zone)

metrics_report = table(
    "metrics_report",
    "id bigint*, node_id bigint, kind text, reporter text, at bigint, expires_at bigint, snapshot_id bigint?, "
    "body binary",
)
Index("metrics_report_node", metrics_report.c.node_id, metrics_report.c.id)
Index("metrics_report_expires", metrics_report.c.expires_at)

fileset_place = table("fileset_place", "node_id bigint*, location name*, managed boolean, going boolean")
Index("fileset_place_location", fileset_place.c.location)

place = table(
    "place",
    "location name*, owner_id bigint*, kind smallint*, catalog_id bigint, metalake_id bigint, state smallint, "
    "conflicting boolean, claimant_id bigint?, since bigint, keys_until bigint?, had_files boolean?",
    sqlite_with_rowid=False,
)
"""The storage locations of all objects with files. `owner_id` is the id of an object, a catalog or a staged create.

`keys_until` is the end of the claim of a staged create, or of an object that is gone, in milliseconds since 1970.
`had_files` is true if files of nobody were there when the location was claimed.
"""
partial_index("place_keys_until", place, "keys_until", where="keys_until IS NOT NULL")
Index("place_owner", place.c.owner_id)
partial_index("place_conflicting", place, "owner_id", where="conflicting")

lance_version = table(
    "lance_version",
    "node_id bigint*, branch name*, version bigint*, scheme smallint, staged text, size bigint?, e_tag text?, "
    "metadata text, created_at bigint, settled boolean",
    sqlite_with_rowid=False,
)

trash = table(
    "trash",
    "node_id bigint*, zone bigint, parent_id bigint, dropped_by text, dropped_by_id bigint?, dropped_at bigint, "
    "expires_at bigint",
    Column("purges", Boolean, nullable=False, server_default=false()),
)
Index("trash_zone", trash.c.zone, trash.c.dropped_at, trash.c.node_id)
Index("trash_parent", trash.c.parent_id, trash.c.dropped_at, trash.c.node_id)
Index("trash_expires", trash.c.expires_at)

dependency = table("dependency", "user_id bigint*, used_id bigint*", sqlite_with_rowid=False)
Index("dependency_used", dependency.c.used_id)

model_version = table(
    "model_version",
    "model_id bigint*, version bigint*, comment text?, properties text, uris text",
    MADE_BY,
    sqlite_with_rowid=False,
)

model_alias = table("model_alias", "model_id bigint*, alias name*, version bigint", sqlite_with_rowid=False)

statistic = table(
    "statistic", "object_id bigint*, partition_name name*, name name*, value text", MADE_BY, sqlite_with_rowid=False
)

column_statistic = table(
    "column_statistic", "object_id bigint*, field_id bigint*, name name*, value text", MADE_BY, sqlite_with_rowid=False
)
