# SPDX-License-Identifier: Apache-2.0
"""Tables of access: principals, roles and grants, tokens and passwords, restrictions, and the audit.

Must not know statements.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Index, Text, false

from limnos.store.schema.base import GONE, MADE_BY, Id, live_index, partial_index, table

principal = table(
    "principal",
    "id bigint*, metalake_id bigint, kind smallint, name name, external_id name?, enabled boolean",
    MADE_BY,
    "deleted bigint",
    Column("tokens_from", Id, nullable=False, server_default="0"),
    Column("signed_in", BigInteger),
)
partial_index("principal_former", principal, "metalake_id", "kind", "name", where=GONE)
live_index("principal_name", principal, "metalake_id", "kind", "name")
live_index("principal_external_id", principal, "metalake_id", "kind", "external_id")

role = table("role", "id bigint*, metalake_id bigint, name name", MADE_BY, "deleted bigint, record binary")
live_index("role_name", role, "metalake_id", "name")

grant = table(
    "access_grant",  # `grant` is a reserved word
    "role_id bigint*, object_id bigint*, privilege smallint*, object_kind smallint, allowed boolean",
    sqlite_with_rowid=False,
)
Index("access_grant_object", grant.c.object_id)
grant_denied = partial_index("access_grant_denied", grant, "object_id", where="NOT allowed")

role_member = table("role_member", "principal_id bigint*, role_id bigint*", sqlite_with_rowid=False)
Index("role_member_role", role_member.c.role_id)

group_member = table(
    "group_member",
    "user_id bigint*, group_id bigint*",
    Column("issued", Boolean, nullable=False, server_default=false()),
    sqlite_with_rowid=False,
)
Index("group_member_group", group_member.c.group_id)

token = table(
    "token",
    "id bigint*, user_name name, name text, secret_hash binary, created_at bigint, expires_at bigint?, revoked boolean",
    Column("trust", Text, nullable=False, server_default="believed"),
    "root_id bigint?",
    Column("purpose", Text, nullable=False, server_default="api"),
    "opened_by bigint?, ends_at bigint?, table_id bigint?, signed_in_at bigint?",
    Column("second_user_id", Id, nullable=False, server_default="0"),
)
Index("token_user", token.c.user_name)

password = table("password", "user_name name*, hash text, trust text, root_id bigint, changed_at bigint")

restriction = table("restriction", "object_id bigint*, name name*, zone bigint, terms text, set_by text, set_at bigint")
Index("restriction_zone", restriction.c.zone)

access_request = table(
    "access_request",
    "metalake_id bigint*, user_id bigint*, kind smallint*, path name*, preset text, asked_at bigint",
    Column("reason", Text, nullable=False, server_default=""),
)
"""Open requests of users for access to objects, also to those that do not exist; `path` is a JSON list of names."""
Index("access_request_time", access_request.c.metalake_id, access_request.c.asked_at)

access_answer = table(
    "access_answer",
    "metalake_id bigint*, user_id bigint*, kind smallint*, path name*, preset text, asked_at bigint, reason text, "
    "answer text, answered_by name, answered_at bigint, note text",
)
"""Answered requests for access, for 30 days after the answer: no right comes from them."""

former_restriction = table(
    "former_restriction",
    "zone bigint*, path name*, object_id bigint*, restriction name*, name name, name_space text, terms text, "
    "set_by text, set_at bigint, expires_at bigint",
)
"""Restrictions and denials of objects under paths that they no longer have; `path` is a JSON list of names."""
Index("former_restriction_name", former_restriction.c.zone, former_restriction.c.name)

former_object = table(
    "former_object",
    "zone bigint*, path name*, name_space text*, object_id bigint, name name, kind smallint, owner_id bigint?, "
    "left_at bigint, expires_at bigint, carried text",
)
"""The last object that left a path, in catalogs where objects of the same owner take over grants, tags and lineage."""
Index("former_object_name", former_object.c.zone, former_object.c.name)
Index("former_object_id", former_object.c.object_id)

audit = table(
    "audit",
    "id bigint*, metalake_id bigint, at bigint, user_name name, user_id bigint?, outcome text, change text, "
    "action text, kind text, object_id bigint, path name, new_path text, detail text, rights text, protocol text, "
    "operation text, status integer, request_id name, client text, peer text, credential text, zone bigint?, "
    "revision bigint?, ordinal integer?",
)
Index("audit_metalake", audit.c.metalake_id, audit.c.id)
Index("audit_at", audit.c.at)
Index("audit_time", audit.c.metalake_id, audit.c.at, audit.c.id)
Index("audit_user", audit.c.user_name, audit.c.id)
Index("audit_object", audit.c.object_id, audit.c.id)
Index("audit_path", audit.c.path, audit.c.id)
Index("audit_request", audit.c.request_id)

audit_note = table("audit_note", "id bigint*, zone bigint, actor text, request_id text, at bigint, payload text")
audit_position = table("audit_position", "zone bigint*, revision bigint")
