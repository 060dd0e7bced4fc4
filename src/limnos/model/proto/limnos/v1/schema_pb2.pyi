# Written by scripts/generate_proto.py from proto/; do not edit.
# ruff: noqa
# mypy: ignore-errors
import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SchemaVersion(_message.Message):
    __slots__ = ("major_version", "minor_version")
    MAJOR_VERSION_FIELD_NUMBER: _ClassVar[int]
    MINOR_VERSION_FIELD_NUMBER: _ClassVar[int]
    major_version: int
    minor_version: int
    def __init__(self, major_version: _Optional[int] = ..., minor_version: _Optional[int] = ...) -> None: ...

class AuditInfo(_message.Message):
    __slots__ = ("creator", "create_time", "last_modifier", "last_modified_time")
    CREATOR_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    LAST_MODIFIER_FIELD_NUMBER: _ClassVar[int]
    LAST_MODIFIED_TIME_FIELD_NUMBER: _ClassVar[int]
    creator: str
    create_time: _timestamp_pb2.Timestamp
    last_modifier: str
    last_modified_time: _timestamp_pb2.Timestamp
    def __init__(self, creator: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_modifier: _Optional[str] = ..., last_modified_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Metalake(_message.Message):
    __slots__ = ("id", "name", "comment", "properties", "audit_info", "version", "in_use")
    class PropertiesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    PROPERTIES_FIELD_NUMBER: _ClassVar[int]
    AUDIT_INFO_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    IN_USE_FIELD_NUMBER: _ClassVar[int]
    id: int
    name: str
    comment: str
    properties: _containers.ScalarMap[str, str]
    audit_info: AuditInfo
    version: SchemaVersion
    in_use: bool
    def __init__(self, id: _Optional[int] = ..., name: _Optional[str] = ..., comment: _Optional[str] = ..., properties: _Optional[_Mapping[str, str]] = ..., audit_info: _Optional[_Union[AuditInfo, _Mapping]] = ..., version: _Optional[_Union[SchemaVersion, _Mapping]] = ..., in_use: _Optional[bool] = ...) -> None: ...

class Catalog(_message.Message):
    __slots__ = ("id", "metalake_id", "name", "comment", "type", "properties", "audit_info", "version", "provider", "in_use")
    class Type(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        UNSPECIFIED: _ClassVar[Catalog.Type]
        RELATIONAL: _ClassVar[Catalog.Type]
        FILE: _ClassVar[Catalog.Type]
        STREAM: _ClassVar[Catalog.Type]
        ML: _ClassVar[Catalog.Type]
    UNSPECIFIED: Catalog.Type
    RELATIONAL: Catalog.Type
    FILE: Catalog.Type
    STREAM: Catalog.Type
    ML: Catalog.Type
    class PropertiesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    METALAKE_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    PROPERTIES_FIELD_NUMBER: _ClassVar[int]
    AUDIT_INFO_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    IN_USE_FIELD_NUMBER: _ClassVar[int]
    id: int
    metalake_id: int
    name: str
    comment: str
    type: Catalog.Type
    properties: _containers.ScalarMap[str, str]
    audit_info: AuditInfo
    version: SchemaVersion
    provider: str
    in_use: bool
    def __init__(self, id: _Optional[int] = ..., metalake_id: _Optional[int] = ..., name: _Optional[str] = ..., comment: _Optional[str] = ..., type: _Optional[_Union[Catalog.Type, str]] = ..., properties: _Optional[_Mapping[str, str]] = ..., audit_info: _Optional[_Union[AuditInfo, _Mapping]] = ..., version: _Optional[_Union[SchemaVersion, _Mapping]] = ..., provider: _Optional[str] = ..., in_use: _Optional[bool] = ...) -> None: ...

class Namespace(_message.Message):
    __slots__ = ("id", "catalog_id", "parent_id", "name", "comment", "properties", "audit_info", "version")
    class PropertiesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    CATALOG_ID_FIELD_NUMBER: _ClassVar[int]
    PARENT_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    PROPERTIES_FIELD_NUMBER: _ClassVar[int]
    AUDIT_INFO_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    id: int
    catalog_id: int
    parent_id: int
    name: str
    comment: str
    properties: _containers.ScalarMap[str, str]
    audit_info: AuditInfo
    version: SchemaVersion
    def __init__(self, id: _Optional[int] = ..., catalog_id: _Optional[int] = ..., parent_id: _Optional[int] = ..., name: _Optional[str] = ..., comment: _Optional[str] = ..., properties: _Optional[_Mapping[str, str]] = ..., audit_info: _Optional[_Union[AuditInfo, _Mapping]] = ..., version: _Optional[_Union[SchemaVersion, _Mapping]] = ...) -> None: ...

class Table(_message.Message):
    __slots__ = ("id", "namespace_id", "catalog_id", "name", "comment", "format", "columns", "properties", "audit_info", "version")
    class PropertiesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    CATALOG_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    PROPERTIES_FIELD_NUMBER: _ClassVar[int]
    AUDIT_INFO_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    id: int
    namespace_id: int
    catalog_id: int
    name: str
    comment: str
    format: str
    columns: _containers.RepeatedCompositeFieldContainer[Column]
    properties: _containers.ScalarMap[str, str]
    audit_info: AuditInfo
    version: SchemaVersion
    def __init__(self, id: _Optional[int] = ..., namespace_id: _Optional[int] = ..., catalog_id: _Optional[int] = ..., name: _Optional[str] = ..., comment: _Optional[str] = ..., format: _Optional[str] = ..., columns: _Optional[_Iterable[_Union[Column, _Mapping]]] = ..., properties: _Optional[_Mapping[str, str]] = ..., audit_info: _Optional[_Union[AuditInfo, _Mapping]] = ..., version: _Optional[_Union[SchemaVersion, _Mapping]] = ...) -> None: ...

class Column(_message.Message):
    __slots__ = ("id", "name", "type", "nullable", "comment", "default_value")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    NULLABLE_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_VALUE_FIELD_NUMBER: _ClassVar[int]
    id: int
    name: str
    type: str
    nullable: bool
    comment: str
    default_value: str
    def __init__(self, id: _Optional[int] = ..., name: _Optional[str] = ..., type: _Optional[str] = ..., nullable: _Optional[bool] = ..., comment: _Optional[str] = ..., default_value: _Optional[str] = ...) -> None: ...
