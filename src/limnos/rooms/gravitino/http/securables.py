# SPDX-License-Identifier: Apache-2.0
"""Securable objects in bodies: parsing them into privilege requests, and encoding roles with their objects.

Has no business rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing

import msgspec

from limnos.model.entities import RoleWithRules
from limnos.model.privileges import parse_condition, parse_privilege
from limnos.rooms.gravitino.http import dto
from limnos.rooms.gravitino.http.handler_wrappers import GravitinoRequestBody
from limnos.services.identity.grants import PrivilegeRequest
from limnos.services.identity.roles import role_objects
from limnos.services.lookup.securables import parse_kind
from limnos.services.request.context import Context
from limnos.services.request.name_codecs import codec_for


class PrivilegeBody(GravitinoRequestBody, frozen=True):
    """A privilege with its condition, `allow` or `deny`; both in upper or lower case."""

    name: str
    condition: str


class SecurableObject(GravitinoRequestBody, frozen=True):
    """A securable object in JSON, with the privileges granted on it."""

    full_name: str
    type: str
    privileges: list[PrivilegeBody]


def privilege_request_of(kind: str, full_name: str, privileges: Sequence[PrivilegeBody]) -> PrivilegeRequest:
    """Parse the requested privileges on one object. Raises BadRequest for an unknown kind, IllegalPrivilege for an
    unknown privilege or condition.
    """
    rules = tuple((parse_privilege(each.name), parse_condition(each.condition)) for each in privileges)
    return PrivilegeRequest(parse_kind(kind), full_name, rules)


def privilege_requests_of(objects: Sequence[SecurableObject]) -> tuple[PrivilegeRequest, ...]:
    """Parse the requested privileges on several objects."""
    return tuple(privilege_request_of(each.type, each.full_name, each.privileges) for each in objects)


async def role_json(ctx: Context, rules: RoleWithRules, *, metalake: str | None = None) -> dict[str, object]:
    """Encode a role with the names of its objects, part by part, so that a large role does not block other requests.

    `metalake` is as in `role_objects`.
    """
    codec = codec_for(ctx.services.defaults)
    async with aclosing(role_objects(ctx, rules, metalake=metalake)) as lists:
        encoded = [msgspec.json.encode(dto.securables(objects, codec))[1:-1] async for objects in lists]
    return dto.role(rules.role, msgspec.Raw(b"[" + b",".join(filter(None, encoded)) + b"]"))
