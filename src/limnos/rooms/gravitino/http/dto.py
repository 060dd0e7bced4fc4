# SPDX-License-Identifier: Apache-2.0
"""Encoders of service results as Gravitino's DTO classes (version 1.3). Fields without a value are omitted.

Must not know routes. Enum values are in lower case and times in ISO-8601, as clients require.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

import msgspec

from limnos.formats.gravitino.job_templates import FIELDS, content_read
from limnos.http.response import Response, json_response
from limnos.http.times import instant
from limnos.model.entities import Node, Principal, RoleEntity
from limnos.model.jobs import TemplateJob
from limnos.model.kinds import Kind
from limnos.model.model_versions import UNKNOWN_URI, ModelVersion
from limnos.model.privileges import Privilege
from limnos.model.records import (
    CatalogRecord,
    FilesetRecord,
    JobTemplateRecord,
    MetalakeRecord,
    ModelRecord,
    NamespaceRecord,
    PolicyRecord,
    SqlppObjectRecord,
    TagRecord,
    TopicRecord,
)
from limnos.model.runs import PipelineRun
from limnos.model.statistics import Statistic
from limnos.names.errors import InvalidName
from limnos.names.logical import LogicalCodec
from limnos.services.catalog.filesets import DEFAULT_NAME, UNKNOWN, FileInfo
from limnos.services.catalog.stored_functions import function_view
from limnos.services.governance.tag_values import allowed_values
from limnos.services.identity.roles import RoleObject
from limnos.services.identity.users import RoleHolder
from limnos.services.lookup.securables import render_full_name
from limnos.services.vending.credentials import VendedCredentials
from limnos.sources.adls import AdlsSignature
from limnos.sources.gcs import GcsToken

Json = dict[str, object]

_TYPES = {"RELATIONAL": "relational", "FILE": "fileset", "STREAM": "messaging", "ML": "model"}
"""The catalog types of records, with their names in Gravitino."""


def ok(**fields: object) -> Response:
    """Return a success response: a JSON object with `code` 0 and the given fields."""
    return json_response({"code": 0, **fields})


def compact(**fields: object) -> Json:
    """Return the fields whose value is not None."""
    return {key: value for key, value in fields.items() if value is not None}


def identifiers(namespace: Sequence[str], names: Iterable[str]) -> Response:
    """Return a response with a list of names below a namespace."""
    return ok(identifiers=[{"namespace": list(namespace), "name": name} for name in names])


def audit(item: Node | Principal | RoleEntity | ModelVersion | Statistic) -> Json:
    """Encode the creator and the last modifier, with times."""
    return compact(
        creator=item.created_by,
        createTime=instant(item.created_at),
        lastModifier=item.modified_by,
        lastModifiedTime=instant(item.modified_at),
    )


def metalake(node: Node) -> Json:
    """Encode a metalake; the property `in-use` states whether it is enabled."""
    record = cast("MetalakeRecord", node.record)
    properties = {**record.properties, "in-use": _word(flag=record.in_use)}
    return compact(name=node.name, comment=record.comment, properties=properties, audit=audit(node))


def catalog(node: Node) -> Json:
    """Encode a catalog, with the properties that are visible to the caller."""
    record = cast("CatalogRecord", node.record)
    return compact(
        name=node.name,
        type=_TYPES.get(record.type, record.type.lower()),
        provider=record.provider,
        comment=record.comment,
        properties={**record.properties, "in-use": _word(flag=record.in_use)},
        audit=audit(node),
    )


def _word(*, flag: bool) -> str:
    return "true" if flag else "false"


def schema(node: Node, name: str) -> Json:
    """Encode a namespace under its full logical name."""
    record = cast("NamespaceRecord", node.record)
    return compact(name=name, comment=record.comment, properties=dict(record.properties), audit=audit(node))


def tag(node: Node) -> Json:
    """Encode a tag as a TagDTO, with the values that it allows."""
    record = cast("TagRecord", node.record)
    return compact(
        name=node.name,
        comment=record.comment,
        properties=dict(record.properties),
        allowedValues=allowed_values(record),
        audit=audit(node),
    )


def policy(node: Node) -> Json:
    """Encode a policy as a PolicyDTO; the content is the stored JSON, unchanged."""
    record = cast("PolicyRecord", node.record)
    return compact(
        name=node.name,
        comment=record.comment,
        policyType=record.policy_type,
        enabled=record.enabled,
        content=msgspec.Raw(record.content.encode()),
        audit=audit(node),
    )


def model(node: Node) -> Json:
    """Encode a model. As in Gravitino, `latestVersion` is the number that the next version will get."""
    record = cast("ModelRecord", node.record)
    return {**_describe_object(node, record), "latestVersion": record.next_version}


def _describe_object(node: Node, record: ModelRecord | FilesetRecord | TopicRecord) -> Json:
    return compact(name=node.name, comment=record.comment, properties=dict(record.properties), audit=audit(node))


def topic(node: Node) -> Json:
    """Encode a topic: name, comment, properties and audit fields."""
    return _describe_object(node, cast("TopicRecord", node.record))


def function(node: Node) -> Json:
    """Encode a function with its definitions in Gravitino's JSON format."""
    record = cast("SqlppObjectRecord", node.record)
    return {**compact(name=node.name, comment=record.comment, audit=audit(node)), **function_view(node)}


def fileset(node: Node) -> Json:
    """Encode a fileset. Its single location is the unnamed one, else the default one."""
    record = cast("FilesetRecord", node.record)
    default = record.properties.get(DEFAULT_NAME, UNKNOWN)
    return {
        **_describe_object(node, record),
        "type": "external" if record.external else "managed",
        "storageLocation": record.locations.get(UNKNOWN) or record.locations.get(default, ""),
        "storageLocations": dict(record.locations),
    }


def file_info(info: FileInfo) -> Json:
    """Encode an entry of a fileset's directory."""
    return {
        "name": info.name,
        "isDir": info.is_directory,
        "size": info.size,
        "lastModified": info.modified_ms,
        "path": info.path,
    }


def model_version(version: ModelVersion) -> Json:
    """Encode a version of a model. `uri` is the URI without a name."""
    return compact(
        version=version.version,
        comment=version.comment,
        aliases=list(version.aliases),
        uri=version.uris.get(UNKNOWN_URI),
        uris=dict(version.uris),
        properties=dict(version.properties),
        audit=audit(version),
    )


def job_template(node: Node) -> Json:
    """Encode a job template. A pipeline is encoded as a Spark template; its own fields are custom fields."""
    record = cast("JobTemplateRecord", node.record)
    if record.job_type:
        content = msgspec.to_builtins(content_read(record.content))
        body = {name: content.get(name, _NOTHING[name]) for name in FIELDS[record.job_type]}
        return compact(jobType=record.job_type, name=node.name, comment=record.comment, **body, audit=audit(node))
    own_fields = {"limnos.pipeline": node.name, "limnos.version": str(record.declared), "limnos.digest": record.digest}
    return compact(
        jobType="spark",
        name=node.name,
        comment=record.comment,
        executable="limnos",
        arguments=[],
        environments={},
        customFields={**record.properties, **own_fields},
        jars=[],
        files=[],
        archives=[],
        configs={},
        audit=audit(node),
    )


_NOTHING: Mapping[str, object] = {
    "executable": "",
    "arguments": [],
    "environments": {},
    "customFields": {},
    "scripts": [],
    "className": None,
    "jars": [],
    "files": [],
    "archives": [],
    "configs": {},
}
"""The default field values of a template."""


_STATUSES = {
    "running": "started",
    "cancelling": "cancelling",
    "lost": "failed",
    "held": "started",
    "failed": "failed",
    "cancelled": "cancelled",
    "discarded": "cancelled",
    "published": "succeeded",
}
"""The states of runs in Gravitino's job statuses: a held run counts as running, a discarded one as cancelled."""


def job(run: PipelineRun, *, template: str, state: str) -> Json:
    """Encode a run of a pipeline as a job of its template."""
    body = compact(
        creator=run.user, createTime=instant(run.started_at), lastModifiedTime=instant(run.ended_at or run.resumed_at)
    )
    times = compact(
        queuedAt=instant(run.started_at), startedAt=instant(run.started_at), finishedAt=instant(run.ended_at)
    )
    return {"jobId": run.uuid, "jobTemplateName": template, "status": _STATUSES[state], "audit": body, **times}


def template_job(job: TemplateJob, *, template: str, state: str) -> Json:
    """Encode a job that a node of the server executes."""
    modified_at = job.ended_at or job.started_at
    body = compact(creator=job.user, createTime=instant(job.queued_at), lastModifiedTime=instant(modified_at))
    times = compact(
        queuedAt=instant(job.queued_at), startedAt=instant(job.started_at), finishedAt=instant(job.ended_at)
    )
    return {"jobId": job.uuid, "jobTemplateName": template, "status": state, "audit": body, **times}


def statistic(result: Statistic) -> Json:
    """Encode a statistic. All statistics are custom ones; the server computes none."""
    value = msgspec.json.decode(result.value)
    return {"name": result.name, "value": value, "reserved": False, "modifiable": True, "audit": audit(result)}


def credential(credentials: VendedCredentials) -> Json:
    """Encode credentials for files in an object store."""
    keys = credentials.credentials
    if isinstance(keys, GcsToken):
        return {
            "credentialType": "gcs-token",
            "expireTimeInMs": keys.expires_ms,
            "credentialInfo": {"token": keys.token},
        }
    if isinstance(keys, AdlsSignature):
        signature = {"adls-sas-token": keys.token, "azure-storage-account-name": keys.host.partition(".")[0]}
        return {"credentialType": "adls-token", "expireTimeInMs": keys.expires_ms, "credentialInfo": signature}
    info = {
        "s3-access-key-id": keys.access_key_id,
        "s3-secret-access-key": keys.secret_access_key,
        "s3-session-token": keys.session_token,
    }
    return {"credentialType": "s3-token", "expireTimeInMs": keys.expires_ms, "credentialInfo": info}


def metadata_object(kind: Kind, path: tuple[str, ...], codec: LogicalCodec) -> Json | None:
    """Encode an object of the tree by its full name and type. None for a name that the server's separator cannot
    spell, which another node of the store has made.
    """
    try:
        name = full_name(kind, path, codec)
    except InvalidName:
        return None
    return {"fullName": name, "type": "schema" if kind is Kind.NAMESPACE else kind.word}


def user(holder: RoleHolder) -> Json:
    """Encode a user with the roles that it holds directly."""
    return {**group(holder), "enabled": holder.principal.enabled}


def group(holder: RoleHolder) -> Json:
    """Encode a group with its roles."""
    principal = holder.principal
    return compact(
        name=principal.name, externalId=principal.external_id, roles=list(holder.roles), audit=audit(principal)
    )


def role(entity: RoleEntity, objects: msgspec.Raw) -> Json:
    """Encode a role with its objects, which are already encoded."""
    return {
        "name": entity.name,
        "properties": dict(entity.properties),
        "securableObjects": objects,
        "audit": audit(entity),
    }


def securables(objects: Iterable[RoleObject], codec: LogicalCodec) -> list[Json]:
    """Encode objects with the privileges that a role has on them."""
    return [json for each in objects if (json := _securable(each, codec)) is not None]


def _securable(role_object: RoleObject, codec: LogicalCodec) -> Json | None:
    object_json = metadata_object(role_object.kind, role_object.path, codec)
    if object_json is None:
        return None
    rules = [
        {"name": Privilege(grant.privilege).word, "condition": "allow" if grant.allowed else "deny"}
        for grant in role_object.grants
    ]
    return {**object_json, "privileges": rules}


def full_name(kind: Kind, path: tuple[str, ...], codec: LogicalCodec) -> str:
    """Return an object's full name, with back-quotes around parts that contain dots, so that it is unambiguous."""
    return render_full_name(kind, path, codec=codec)


def owner(principal: Principal) -> Json:
    """Encode an owner as its name and type: `user` or `group`."""
    return {"name": principal.name, "type": principal.kind.word}
