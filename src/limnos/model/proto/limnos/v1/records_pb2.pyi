# Written by scripts/generate_proto.py from proto/; do not edit.
# ruff: noqa
# mypy: ignore-errors
from limnos.model.proto.limnos.v1 import schema_pb2 as _schema_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class MetalakeRecord(_message.Message):
    __slots__ = ("version", "comment", "properties", "in_use")
    class PropertiesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    PROPERTIES_FIELD_NUMBER: _ClassVar[int]
    IN_USE_FIELD_NUMBER: _ClassVar[int]
    version: _schema_pb2.SchemaVersion
    comment: str
    properties: _containers.ScalarMap[str, str]
    in_use: bool
    def __init__(self, version: _Optional[_Union[_schema_pb2.SchemaVersion, _Mapping]] = ..., comment: _Optional[str] = ..., properties: _Optional[_Mapping[str, str]] = ..., in_use: _Optional[bool] = ...) -> None: ...

class CatalogRecord(_message.Message):
    __slots__ = ("version", "comment", "properties", "in_use", "type", "provider")
    class PropertiesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    PROPERTIES_FIELD_NUMBER: _ClassVar[int]
    IN_USE_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    version: _schema_pb2.SchemaVersion
    comment: str
    properties: _containers.ScalarMap[str, str]
    in_use: bool
    type: _schema_pb2.Catalog.Type
    provider: str
    def __init__(self, version: _Optional[_Union[_schema_pb2.SchemaVersion, _Mapping]] = ..., comment: _Optional[str] = ..., properties: _Optional[_Mapping[str, str]] = ..., in_use: _Optional[bool] = ..., type: _Optional[_Union[_schema_pb2.Catalog.Type, str]] = ..., provider: _Optional[str] = ...) -> None: ...

class NamespaceRecord(_message.Message):
    __slots__ = ("version", "comment", "properties")
    class PropertiesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    PROPERTIES_FIELD_NUMBER: _ClassVar[int]
    version: _schema_pb2.SchemaVersion
    comment: str
    properties: _containers.ScalarMap[str, str]
    def __init__(self, version: _Optional[_Union[_schema_pb2.SchemaVersion, _Mapping]] = ..., comment: _Optional[str] = ..., properties: _Optional[_Mapping[str, str]] = ...) -> None: ...

class TableRecord(_message.Message):
    __slots__ = ("version", "comment", "properties", "declared", "managed", "statements", "object_type")
    class PropertiesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    PROPERTIES_FIELD_NUMBER: _ClassVar[int]
    DECLARED_FIELD_NUMBER: _ClassVar[int]
    MANAGED_FIELD_NUMBER: _ClassVar[int]
    STATEMENTS_FIELD_NUMBER: _ClassVar[int]
    OBJECT_TYPE_FIELD_NUMBER: _ClassVar[int]
    version: _schema_pb2.SchemaVersion
    comment: str
    properties: _containers.ScalarMap[str, str]
    declared: bool
    managed: bool
    statements: _containers.RepeatedScalarFieldContainer[str]
    object_type: str
    def __init__(self, version: _Optional[_Union[_schema_pb2.SchemaVersion, _Mapping]] = ..., comment: _Optional[str] = ..., properties: _Optional[_Mapping[str, str]] = ..., declared: _Optional[bool] = ..., managed: _Optional[bool] = ..., statements: _Optional[_Iterable[str]] = ..., object_type: _Optional[str] = ...) -> None: ...

class ViewRecord(_message.Message):
    __slots__ = ("version", "comment", "properties", "writer_id")
    class PropertiesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    PROPERTIES_FIELD_NUMBER: _ClassVar[int]
    WRITER_ID_FIELD_NUMBER: _ClassVar[int]
    version: _schema_pb2.SchemaVersion
    comment: str
    properties: _containers.ScalarMap[str, str]
    writer_id: int
    def __init__(self, version: _Optional[_Union[_schema_pb2.SchemaVersion, _Mapping]] = ..., comment: _Optional[str] = ..., properties: _Optional[_Mapping[str, str]] = ..., writer_id: _Optional[int] = ...) -> None: ...

class DeclaredRecord(_message.Message):
    __slots__ = ("version", "comment", "properties", "statements", "definition", "dependencies")
    class PropertiesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    PROPERTIES_FIELD_NUMBER: _ClassVar[int]
    STATEMENTS_FIELD_NUMBER: _ClassVar[int]
    DEFINITION_FIELD_NUMBER: _ClassVar[int]
    DEPENDENCIES_FIELD_NUMBER: _ClassVar[int]
    version: _schema_pb2.SchemaVersion
    comment: str
    properties: _containers.ScalarMap[str, str]
    statements: _containers.RepeatedScalarFieldContainer[str]
    definition: str
    dependencies: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, version: _Optional[_Union[_schema_pb2.SchemaVersion, _Mapping]] = ..., comment: _Optional[str] = ..., properties: _Optional[_Mapping[str, str]] = ..., statements: _Optional[_Iterable[str]] = ..., definition: _Optional[str] = ..., dependencies: _Optional[_Iterable[str]] = ...) -> None: ...

class ModelRecord(_message.Message):
    __slots__ = ("version", "comment", "properties", "next_version")
    class PropertiesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    PROPERTIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_VERSION_FIELD_NUMBER: _ClassVar[int]
    version: _schema_pb2.SchemaVersion
    comment: str
    properties: _containers.ScalarMap[str, str]
    next_version: int
    def __init__(self, version: _Optional[_Union[_schema_pb2.SchemaVersion, _Mapping]] = ..., comment: _Optional[str] = ..., properties: _Optional[_Mapping[str, str]] = ..., next_version: _Optional[int] = ...) -> None: ...

class FilesetRecord(_message.Message):
    __slots__ = ("version", "comment", "properties", "external", "locations")
    class PropertiesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class LocationsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    PROPERTIES_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_FIELD_NUMBER: _ClassVar[int]
    LOCATIONS_FIELD_NUMBER: _ClassVar[int]
    version: _schema_pb2.SchemaVersion
    comment: str
    properties: _containers.ScalarMap[str, str]
    external: bool
    locations: _containers.ScalarMap[str, str]
    def __init__(self, version: _Optional[_Union[_schema_pb2.SchemaVersion, _Mapping]] = ..., comment: _Optional[str] = ..., properties: _Optional[_Mapping[str, str]] = ..., external: _Optional[bool] = ..., locations: _Optional[_Mapping[str, str]] = ...) -> None: ...

class TopicRecord(_message.Message):
    __slots__ = ("version", "comment", "properties")
    class PropertiesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    PROPERTIES_FIELD_NUMBER: _ClassVar[int]
    version: _schema_pb2.SchemaVersion
    comment: str
    properties: _containers.ScalarMap[str, str]
    def __init__(self, version: _Optional[_Union[_schema_pb2.SchemaVersion, _Mapping]] = ..., comment: _Optional[str] = ..., properties: _Optional[_Mapping[str, str]] = ...) -> None: ...

class PolicyRecord(_message.Message):
    __slots__ = ("version", "comment", "properties", "policy_type", "enabled", "content", "writer_id")
    class PropertiesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    PROPERTIES_FIELD_NUMBER: _ClassVar[int]
    POLICY_TYPE_FIELD_NUMBER: _ClassVar[int]
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    WRITER_ID_FIELD_NUMBER: _ClassVar[int]
    version: _schema_pb2.SchemaVersion
    comment: str
    properties: _containers.ScalarMap[str, str]
    policy_type: str
    enabled: bool
    content: str
    writer_id: int
    def __init__(self, version: _Optional[_Union[_schema_pb2.SchemaVersion, _Mapping]] = ..., comment: _Optional[str] = ..., properties: _Optional[_Mapping[str, str]] = ..., policy_type: _Optional[str] = ..., enabled: _Optional[bool] = ..., content: _Optional[str] = ..., writer_id: _Optional[int] = ...) -> None: ...

class RoleRecord(_message.Message):
    __slots__ = ("version", "properties")
    class PropertiesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PROPERTIES_FIELD_NUMBER: _ClassVar[int]
    version: _schema_pb2.SchemaVersion
    properties: _containers.ScalarMap[str, str]
    def __init__(self, version: _Optional[_Union[_schema_pb2.SchemaVersion, _Mapping]] = ..., properties: _Optional[_Mapping[str, str]] = ...) -> None: ...

class TagRecord(_message.Message):
    __slots__ = ("version", "comment", "properties", "allowed_values", "valueless")
    class PropertiesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    PROPERTIES_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_VALUES_FIELD_NUMBER: _ClassVar[int]
    VALUELESS_FIELD_NUMBER: _ClassVar[int]
    version: _schema_pb2.SchemaVersion
    comment: str
    properties: _containers.ScalarMap[str, str]
    allowed_values: _containers.RepeatedScalarFieldContainer[str]
    valueless: bool
    def __init__(self, version: _Optional[_Union[_schema_pb2.SchemaVersion, _Mapping]] = ..., comment: _Optional[str] = ..., properties: _Optional[_Mapping[str, str]] = ..., allowed_values: _Optional[_Iterable[str]] = ..., valueless: _Optional[bool] = ...) -> None: ...

class JobTemplateRecord(_message.Message):
    __slots__ = ("version", "comment", "properties", "declared", "digest", "job_type", "content")
    class PropertiesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    PROPERTIES_FIELD_NUMBER: _ClassVar[int]
    DECLARED_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    JOB_TYPE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    version: _schema_pb2.SchemaVersion
    comment: str
    properties: _containers.ScalarMap[str, str]
    declared: int
    digest: str
    job_type: str
    content: str
    def __init__(self, version: _Optional[_Union[_schema_pb2.SchemaVersion, _Mapping]] = ..., comment: _Optional[str] = ..., properties: _Optional[_Mapping[str, str]] = ..., declared: _Optional[int] = ..., digest: _Optional[str] = ..., job_type: _Optional[str] = ..., content: _Optional[str] = ...) -> None: ...

class ObjectRecord(_message.Message):
    __slots__ = ("version", "comment", "properties", "fields")
    class PropertiesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    PROPERTIES_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    version: _schema_pb2.SchemaVersion
    comment: str
    properties: _containers.ScalarMap[str, str]
    fields: str
    def __init__(self, version: _Optional[_Union[_schema_pb2.SchemaVersion, _Mapping]] = ..., comment: _Optional[str] = ..., properties: _Optional[_Mapping[str, str]] = ..., fields: _Optional[str] = ...) -> None: ...
