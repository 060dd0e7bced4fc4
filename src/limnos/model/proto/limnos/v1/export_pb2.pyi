# Written by scripts/generate_proto.py from proto/; do not edit.
# ruff: noqa
# mypy: ignore-errors
import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from limnos.model.proto.limnos.v1 import records_pb2 as _records_pb2
from limnos.model.proto.limnos.v1 import schema_pb2 as _schema_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ExportRecord(_message.Message):
    __slots__ = ("header", "principal", "metalake", "catalog", "namespace", "table", "entity", "role", "grant", "link", "model_version", "lance_version", "declaration", "trailer", "statistic", "restriction", "owner_id", "implicit", "pointer", "beyond", "unknown", "masked", "warehouse")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    METALAKE_FIELD_NUMBER: _ClassVar[int]
    CATALOG_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    ENTITY_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    GRANT_FIELD_NUMBER: _ClassVar[int]
    LINK_FIELD_NUMBER: _ClassVar[int]
    MODEL_VERSION_FIELD_NUMBER: _ClassVar[int]
    LANCE_VERSION_FIELD_NUMBER: _ClassVar[int]
    DECLARATION_FIELD_NUMBER: _ClassVar[int]
    TRAILER_FIELD_NUMBER: _ClassVar[int]
    STATISTIC_FIELD_NUMBER: _ClassVar[int]
    RESTRICTION_FIELD_NUMBER: _ClassVar[int]
    OWNER_ID_FIELD_NUMBER: _ClassVar[int]
    IMPLICIT_FIELD_NUMBER: _ClassVar[int]
    POINTER_FIELD_NUMBER: _ClassVar[int]
    BEYOND_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    MASKED_FIELD_NUMBER: _ClassVar[int]
    WAREHOUSE_FIELD_NUMBER: _ClassVar[int]
    header: ExportHeader
    principal: Principal
    metalake: _schema_pb2.Metalake
    catalog: _schema_pb2.Catalog
    namespace: _schema_pb2.Namespace
    table: _schema_pb2.Table
    entity: Entity
    role: Role
    grant: Grant
    link: Link
    model_version: ModelVersion
    lance_version: LanceVersion
    declaration: Declaration
    trailer: ExportTrailer
    statistic: Statistic
    restriction: ReadRestriction
    owner_id: int
    implicit: bool
    pointer: Pointer
    beyond: _records_pb2.TableRecord
    unknown: bytes
    masked: _containers.RepeatedScalarFieldContainer[str]
    warehouse: str
    def __init__(self, header: _Optional[_Union[ExportHeader, _Mapping]] = ..., principal: _Optional[_Union[Principal, _Mapping]] = ..., metalake: _Optional[_Union[_schema_pb2.Metalake, _Mapping]] = ..., catalog: _Optional[_Union[_schema_pb2.Catalog, _Mapping]] = ..., namespace: _Optional[_Union[_schema_pb2.Namespace, _Mapping]] = ..., table: _Optional[_Union[_schema_pb2.Table, _Mapping]] = ..., entity: _Optional[_Union[Entity, _Mapping]] = ..., role: _Optional[_Union[Role, _Mapping]] = ..., grant: _Optional[_Union[Grant, _Mapping]] = ..., link: _Optional[_Union[Link, _Mapping]] = ..., model_version: _Optional[_Union[ModelVersion, _Mapping]] = ..., lance_version: _Optional[_Union[LanceVersion, _Mapping]] = ..., declaration: _Optional[_Union[Declaration, _Mapping]] = ..., trailer: _Optional[_Union[ExportTrailer, _Mapping]] = ..., statistic: _Optional[_Union[Statistic, _Mapping]] = ..., restriction: _Optional[_Union[ReadRestriction, _Mapping]] = ..., owner_id: _Optional[int] = ..., implicit: _Optional[bool] = ..., pointer: _Optional[_Union[Pointer, _Mapping]] = ..., beyond: _Optional[_Union[_records_pb2.TableRecord, _Mapping]] = ..., unknown: _Optional[bytes] = ..., masked: _Optional[_Iterable[str]] = ..., warehouse: _Optional[str] = ...) -> None: ...

class ExportHeader(_message.Message):
    __slots__ = ("version", "metalake", "product", "time", "epoch", "server_revision", "metalake_revision")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    METALAKE_FIELD_NUMBER: _ClassVar[int]
    PRODUCT_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    SERVER_REVISION_FIELD_NUMBER: _ClassVar[int]
    METALAKE_REVISION_FIELD_NUMBER: _ClassVar[int]
    version: _schema_pb2.SchemaVersion
    metalake: str
    product: str
    time: _timestamp_pb2.Timestamp
    epoch: int
    server_revision: int
    metalake_revision: int
    def __init__(self, version: _Optional[_Union[_schema_pb2.SchemaVersion, _Mapping]] = ..., metalake: _Optional[str] = ..., product: _Optional[str] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., epoch: _Optional[int] = ..., server_revision: _Optional[int] = ..., metalake_revision: _Optional[int] = ...) -> None: ...

class Principal(_message.Message):
    __slots__ = ("id", "kind", "name", "external_id", "enabled", "audit_info", "version", "successor")
    ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_ID_FIELD_NUMBER: _ClassVar[int]
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    AUDIT_INFO_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SUCCESSOR_FIELD_NUMBER: _ClassVar[int]
    id: int
    kind: str
    name: str
    external_id: str
    enabled: bool
    audit_info: _schema_pb2.AuditInfo
    version: _schema_pb2.SchemaVersion
    successor: bool
    def __init__(self, id: _Optional[int] = ..., kind: _Optional[str] = ..., name: _Optional[str] = ..., external_id: _Optional[str] = ..., enabled: _Optional[bool] = ..., audit_info: _Optional[_Union[_schema_pb2.AuditInfo, _Mapping]] = ..., version: _Optional[_Union[_schema_pb2.SchemaVersion, _Mapping]] = ..., successor: _Optional[bool] = ...) -> None: ...

class Entity(_message.Message):
    __slots__ = ("id", "parent_id", "catalog_id", "kind", "name", "format", "audit_info", "version", "view", "fileset", "topic", "model", "declared", "tag", "policy", "job_template", "object")
    ID_FIELD_NUMBER: _ClassVar[int]
    PARENT_ID_FIELD_NUMBER: _ClassVar[int]
    CATALOG_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    AUDIT_INFO_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    FILESET_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    DECLARED_FIELD_NUMBER: _ClassVar[int]
    TAG_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    JOB_TEMPLATE_FIELD_NUMBER: _ClassVar[int]
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    id: int
    parent_id: int
    catalog_id: int
    kind: str
    name: str
    format: str
    audit_info: _schema_pb2.AuditInfo
    version: _schema_pb2.SchemaVersion
    view: _records_pb2.ViewRecord
    fileset: _records_pb2.FilesetRecord
    topic: _records_pb2.TopicRecord
    model: _records_pb2.ModelRecord
    declared: _records_pb2.DeclaredRecord
    tag: _records_pb2.TagRecord
    policy: _records_pb2.PolicyRecord
    job_template: _records_pb2.JobTemplateRecord
    object: _records_pb2.ObjectRecord
    def __init__(self, id: _Optional[int] = ..., parent_id: _Optional[int] = ..., catalog_id: _Optional[int] = ..., kind: _Optional[str] = ..., name: _Optional[str] = ..., format: _Optional[str] = ..., audit_info: _Optional[_Union[_schema_pb2.AuditInfo, _Mapping]] = ..., version: _Optional[_Union[_schema_pb2.SchemaVersion, _Mapping]] = ..., view: _Optional[_Union[_records_pb2.ViewRecord, _Mapping]] = ..., fileset: _Optional[_Union[_records_pb2.FilesetRecord, _Mapping]] = ..., topic: _Optional[_Union[_records_pb2.TopicRecord, _Mapping]] = ..., model: _Optional[_Union[_records_pb2.ModelRecord, _Mapping]] = ..., declared: _Optional[_Union[_records_pb2.DeclaredRecord, _Mapping]] = ..., tag: _Optional[_Union[_records_pb2.TagRecord, _Mapping]] = ..., policy: _Optional[_Union[_records_pb2.PolicyRecord, _Mapping]] = ..., job_template: _Optional[_Union[_records_pb2.JobTemplateRecord, _Mapping]] = ..., object: _Optional[_Union[_records_pb2.ObjectRecord, _Mapping]] = ...) -> None: ...

class Pointer(_message.Message):
    __slots__ = ("uuid", "location", "metadata_location")
    UUID_FIELD_NUMBER: _ClassVar[int]
    LOCATION_FIELD_NUMBER: _ClassVar[int]
    METADATA_LOCATION_FIELD_NUMBER: _ClassVar[int]
    uuid: str
    location: str
    metadata_location: str
    def __init__(self, uuid: _Optional[str] = ..., location: _Optional[str] = ..., metadata_location: _Optional[str] = ...) -> None: ...

class Role(_message.Message):
    __slots__ = ("id", "name", "audit_info", "version", "rest")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    AUDIT_INFO_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    REST_FIELD_NUMBER: _ClassVar[int]
    id: int
    name: str
    audit_info: _schema_pb2.AuditInfo
    version: _schema_pb2.SchemaVersion
    rest: _records_pb2.RoleRecord
    def __init__(self, id: _Optional[int] = ..., name: _Optional[str] = ..., audit_info: _Optional[_Union[_schema_pb2.AuditInfo, _Mapping]] = ..., version: _Optional[_Union[_schema_pb2.SchemaVersion, _Mapping]] = ..., rest: _Optional[_Union[_records_pb2.RoleRecord, _Mapping]] = ...) -> None: ...

class Grant(_message.Message):
    __slots__ = ("role_id", "object_id", "privilege", "allowed")
    ROLE_ID_FIELD_NUMBER: _ClassVar[int]
    OBJECT_ID_FIELD_NUMBER: _ClassVar[int]
    PRIVILEGE_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_FIELD_NUMBER: _ClassVar[int]
    role_id: int
    object_id: int
    privilege: str
    allowed: bool
    def __init__(self, role_id: _Optional[int] = ..., object_id: _Optional[int] = ..., privilege: _Optional[str] = ..., allowed: _Optional[bool] = ...) -> None: ...

class Link(_message.Message):
    __slots__ = ("kind", "from_id", "to_id", "below", "set_by", "set_at", "field_id", "values", "attached_by")
    KIND_FIELD_NUMBER: _ClassVar[int]
    FROM_ID_FIELD_NUMBER: _ClassVar[int]
    TO_ID_FIELD_NUMBER: _ClassVar[int]
    BELOW_FIELD_NUMBER: _ClassVar[int]
    SET_BY_FIELD_NUMBER: _ClassVar[int]
    SET_AT_FIELD_NUMBER: _ClassVar[int]
    FIELD_ID_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    ATTACHED_BY_FIELD_NUMBER: _ClassVar[int]
    kind: str
    from_id: int
    to_id: int
    below: bool
    set_by: str
    set_at: _timestamp_pb2.Timestamp
    field_id: int
    values: _containers.RepeatedScalarFieldContainer[str]
    attached_by: int
    def __init__(self, kind: _Optional[str] = ..., from_id: _Optional[int] = ..., to_id: _Optional[int] = ..., below: _Optional[bool] = ..., set_by: _Optional[str] = ..., set_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., field_id: _Optional[int] = ..., values: _Optional[_Iterable[str]] = ..., attached_by: _Optional[int] = ...) -> None: ...

class ModelVersion(_message.Message):
    __slots__ = ("model_id", "number", "comment", "properties", "uris", "aliases", "audit_info")
    class PropertiesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class UrisEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    MODEL_ID_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    PROPERTIES_FIELD_NUMBER: _ClassVar[int]
    URIS_FIELD_NUMBER: _ClassVar[int]
    ALIASES_FIELD_NUMBER: _ClassVar[int]
    AUDIT_INFO_FIELD_NUMBER: _ClassVar[int]
    model_id: int
    number: int
    comment: str
    properties: _containers.ScalarMap[str, str]
    uris: _containers.ScalarMap[str, str]
    aliases: _containers.RepeatedScalarFieldContainer[str]
    audit_info: _schema_pb2.AuditInfo
    def __init__(self, model_id: _Optional[int] = ..., number: _Optional[int] = ..., comment: _Optional[str] = ..., properties: _Optional[_Mapping[str, str]] = ..., uris: _Optional[_Mapping[str, str]] = ..., aliases: _Optional[_Iterable[str]] = ..., audit_info: _Optional[_Union[_schema_pb2.AuditInfo, _Mapping]] = ...) -> None: ...

class LanceVersion(_message.Message):
    __slots__ = ("table_id", "branch", "number", "scheme", "staged", "size", "e_tag", "metadata", "created_at", "settled")
    TABLE_ID_FIELD_NUMBER: _ClassVar[int]
    BRANCH_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    SCHEME_FIELD_NUMBER: _ClassVar[int]
    STAGED_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    E_TAG_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    SETTLED_FIELD_NUMBER: _ClassVar[int]
    table_id: int
    branch: str
    number: int
    scheme: int
    staged: str
    size: int
    e_tag: str
    metadata: str
    created_at: _timestamp_pb2.Timestamp
    settled: bool
    def __init__(self, table_id: _Optional[int] = ..., branch: _Optional[str] = ..., number: _Optional[int] = ..., scheme: _Optional[int] = ..., staged: _Optional[str] = ..., size: _Optional[int] = ..., e_tag: _Optional[str] = ..., metadata: _Optional[str] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., settled: _Optional[bool] = ...) -> None: ...

class Declaration(_message.Message):
    __slots__ = ("pipeline_id", "number", "digest", "text", "declared_by", "declared_at")
    PIPELINE_ID_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    DECLARED_BY_FIELD_NUMBER: _ClassVar[int]
    DECLARED_AT_FIELD_NUMBER: _ClassVar[int]
    pipeline_id: int
    number: int
    digest: str
    text: str
    declared_by: str
    declared_at: _timestamp_pb2.Timestamp
    def __init__(self, pipeline_id: _Optional[int] = ..., number: _Optional[int] = ..., digest: _Optional[str] = ..., text: _Optional[str] = ..., declared_by: _Optional[str] = ..., declared_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Statistic(_message.Message):
    __slots__ = ("table_id", "partition", "name", "value", "audit_info", "field_id")
    TABLE_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    AUDIT_INFO_FIELD_NUMBER: _ClassVar[int]
    FIELD_ID_FIELD_NUMBER: _ClassVar[int]
    table_id: int
    partition: str
    name: str
    value: str
    audit_info: _schema_pb2.AuditInfo
    field_id: int
    def __init__(self, table_id: _Optional[int] = ..., partition: _Optional[str] = ..., name: _Optional[str] = ..., value: _Optional[str] = ..., audit_info: _Optional[_Union[_schema_pb2.AuditInfo, _Mapping]] = ..., field_id: _Optional[int] = ...) -> None: ...

class ReadRestriction(_message.Message):
    __slots__ = ("object_id", "name", "row_filter", "masks", "to_ids", "except_ids", "set_by", "set_at", "former", "inherited", "denies")
    OBJECT_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ROW_FILTER_FIELD_NUMBER: _ClassVar[int]
    MASKS_FIELD_NUMBER: _ClassVar[int]
    TO_IDS_FIELD_NUMBER: _ClassVar[int]
    EXCEPT_IDS_FIELD_NUMBER: _ClassVar[int]
    SET_BY_FIELD_NUMBER: _ClassVar[int]
    SET_AT_FIELD_NUMBER: _ClassVar[int]
    FORMER_FIELD_NUMBER: _ClassVar[int]
    INHERITED_FIELD_NUMBER: _ClassVar[int]
    DENIES_FIELD_NUMBER: _ClassVar[int]
    object_id: int
    name: str
    row_filter: str
    masks: _containers.RepeatedCompositeFieldContainer[ColumnMask]
    to_ids: _containers.RepeatedScalarFieldContainer[int]
    except_ids: _containers.RepeatedScalarFieldContainer[int]
    set_by: str
    set_at: _timestamp_pb2.Timestamp
    former: _containers.RepeatedCompositeFieldContainer[FormerColumn]
    inherited: bool
    denies: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, object_id: _Optional[int] = ..., name: _Optional[str] = ..., row_filter: _Optional[str] = ..., masks: _Optional[_Iterable[_Union[ColumnMask, _Mapping]]] = ..., to_ids: _Optional[_Iterable[int]] = ..., except_ids: _Optional[_Iterable[int]] = ..., set_by: _Optional[str] = ..., set_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., former: _Optional[_Iterable[_Union[FormerColumn, _Mapping]]] = ..., inherited: _Optional[bool] = ..., denies: _Optional[_Iterable[str]] = ...) -> None: ...

class FormerColumn(_message.Message):
    __slots__ = ("table_id", "field_id", "name")
    TABLE_ID_FIELD_NUMBER: _ClassVar[int]
    FIELD_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    table_id: int
    field_id: int
    name: str
    def __init__(self, table_id: _Optional[int] = ..., field_id: _Optional[int] = ..., name: _Optional[str] = ...) -> None: ...

class ColumnMask(_message.Message):
    __slots__ = ("column", "action", "field_id")
    COLUMN_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    FIELD_ID_FIELD_NUMBER: _ClassVar[int]
    column: str
    action: str
    field_id: int
    def __init__(self, column: _Optional[str] = ..., action: _Optional[str] = ..., field_id: _Optional[int] = ...) -> None: ...

class ExportTrailer(_message.Message):
    __slots__ = ("records",)
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    records: int
    def __init__(self, records: _Optional[int] = ...) -> None: ...
