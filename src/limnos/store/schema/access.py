"""Tables of access: principals, roles and grants, tokens and passwords, restrictions, and the audit.

May import only SQLAlchemy and this room. Knows no statement.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    false,
    text,
)

from limnos.store.schema.base import GONE, Id, Name, live_index, made_by, metadata

principal = Table(
    "principal",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=False),
    Column("metalake_id", Id, nullable=False),
    Column("kind", SmallInteger, nullable=False),
    Column("name", Name, nullable=False),
    Column("external_id", Name),
    Column("enabled", Boolean, nullable=False),
    *made_by(),
    Column("deleted", Id, nullable=False),
    Column("tokens_from", Id, nullable=False, server_default="0"),
    Column("signed_in", BigInteger),
)
Index(
    "principal_former",
    principal.c.metalake_id,
    principal.c.kind,
    principal.c.name,
    sqlite_where=text(GONE),
    postgresql_where=text(GONE),
)
live_index("principal_name", principal, "metalake_id", "kind", "name")
live_index("principal_external_id", principal, "metalake_id", "kind", "external_id")

role = Table(
    "role",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=False),
    Column("metalake_id", Id, nullable=False),
    Column("name", Name, nullable=False),
    *made_by(),
    Column("deleted", Id, nullable=False),
    Column("record", LargeBinary, nullable=False),
)
live_index("role_name", role, "metalake_id", "name")

grant = Table(
    "access_grant",  # `grant` is a reserved word
    metadata,
    Column("role_id", Id, nullable=False),
    Column("object_id", Id, nullable=False),
    Column("privilege", SmallInteger, nullable=False),
    Column("object_kind", SmallInteger, nullable=False),
    Column("allowed", Boolean, nullable=False),
    PrimaryKeyConstraint("role_id", "object_id", "privilege"),
    sqlite_with_rowid=False,
)
Index("access_grant_object", grant.c.object_id)

role_member = Table(
    "role_member",
    metadata,
    Column("principal_id", Id, nullable=False),
    Column("role_id", Id, nullable=False),
    PrimaryKeyConstraint("principal_id", "role_id"),
    sqlite_with_rowid=False,
)
Index("role_member_role", role_member.c.role_id)

group_member = Table(
    "group_member",
    metadata,
    Column("user_id", Id, nullable=False),
    Column("group_id", Id, nullable=False),
    Column("issued", Boolean, nullable=False, server_default=false()),
    PrimaryKeyConstraint("user_id", "group_id"),
    sqlite_with_rowid=False,
)
Index("group_member_group", group_member.c.group_id)

token = Table(
    "token",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=False),
    Column("user_name", Name, nullable=False),
    Column("name", Text, nullable=False),
    Column("secret_hash", LargeBinary, nullable=False),
    Column("created_at", Id, nullable=False),
    Column("expires_at", Id),
    Column("revoked", Boolean, nullable=False),
    Column("trust", Text, nullable=False, server_default="believed"),
    Column("root_id", Id),
    Column("purpose", Text, nullable=False, server_default="api"),
    Column("opened_by", Id),
    Column("ends_at", Id),
    Column("table_id", Id),
)
Index("token_user", token.c.user_name)

password = Table(
    "password",
    metadata,
    Column("user_name", Name, primary_key=True),
    Column("hash", Text, nullable=False),
    Column("trust", Text, nullable=False),
    Column("root_id", Id, nullable=False),
    Column("changed_at", Id, nullable=False),
)

restriction = Table(
    "restriction",
    metadata,
    Column("object_id", Id, primary_key=True, autoincrement=False),
    Column("name", Name, primary_key=True),
    Column("zone", Id, nullable=False),
    Column("terms", Text, nullable=False),
    Column("set_by", Text, nullable=False),
    Column("set_at", Id, nullable=False),
)
Index("restriction_zone", restriction.c.zone)

audit = Table(
    "audit",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=False),
    Column("metalake_id", Id, nullable=False),
    Column("at", Id, nullable=False),
    Column("user_name", Name, nullable=False),
    Column("user_id", Id),
    Column("outcome", Text, nullable=False),
    Column("change", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("object_id", Id, nullable=False),
    Column("path", Name, nullable=False),
    Column("new_path", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Column("rights", Text, nullable=False),
    Column("protocol", Text, nullable=False),
    Column("operation", Text, nullable=False),
    Column("status", Integer, nullable=False),
    Column("request_id", Name, nullable=False),
    Column("client", Text, nullable=False),
    Column("peer", Text, nullable=False),
    Column("credential", Text, nullable=False),
    Column("zone", Id),
    Column("revision", Id),
    Column("ordinal", Integer),
)
Index("audit_metalake", audit.c.metalake_id, audit.c.id)
Index("audit_at", audit.c.at)
Index("audit_user", audit.c.user_name, audit.c.id)
Index("audit_object", audit.c.object_id, audit.c.id)
Index("audit_path", audit.c.path, audit.c.id)
Index("audit_request", audit.c.request_id)

audit_note = Table(
    "audit_note", metadata, Column("id", Id, primary_key=True, autoincrement=False),
    Column("zone", Id, nullable=False), Column("actor", Text, nullable=False), Column("request_id", Text, nullable=False),
    Column("at", Id, nullable=False), Column("payload", Text, nullable=False),
)  # fmt: skip
audit_position = Table(
    "audit_position", metadata, Column("zone", Id, primary_key=True, autoincrement=False), Column("revision", Id, nullable=False)
)  # fmt: skip
