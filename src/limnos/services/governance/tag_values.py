# SPDX-License-Identifier: Apache-2.0
"""Tag values: the values that a tag allows, and adding and removing pairs of a tag and a value on objects.

Must not know any wire format. An object has a tag without a value, or with one or more values in the order in which
they were added. Adding is incremental, and an existing pair is not an error. Removing the last value detaches the tag.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, cast

import msgspec

from limnos.access.actions import Action
from limnos.model.attachments import check_tag_value
from limnos.model.entities import Node
from limnos.model.errors import BadRequest
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.model.records import TagRecord
from limnos.services.federation.placeholder_nodes import with_placeholders
from limnos.services.governance import attachments
from limnos.services.lookup.securables import AttachmentTarget
from limnos.services.request.context import Context
from limnos.services.request.request_view import RequestView
from limnos.store.tx import Tx
from limnos.view.cache_miss import for_each

VALUES_MAX: Final = 1_000
"""The maximum number of values that a tag may allow, and may have on one object."""


class TagValuePair(NamedTuple):
    """A tag by its name, and a value; None for the tag without a value."""

    name: str
    value: str | None


class TagPairs(msgspec.Struct, frozen=True):
    """The values of one tag to add to an object and to remove from it; None stands for the tag without a value."""

    tag: Node
    adds: tuple[str | None, ...]
    removes: tuple[str | None, ...]


class TagPairsChange(msgspec.Struct, frozen=True, kw_only=True):
    """The command to change the values of tags on an object or column; `visible_ids` are the ids of the tags visible to
    the caller.
    """

    target: Node
    field_id: int
    column: str | None
    tags: tuple[TagPairs, ...]
    visible_ids: frozenset[int]


def tag_record(comment: str | None, properties: dict[str, str], *, allowed_values: Sequence[str] | None) -> TagRecord:
    """Return the record of a tag that allows any value (None), no values (empty), or the given ones.

    Raises BadRequest for an invalid value or too many values.
    """
    values = tuple(dict.fromkeys(check_tag_value(value) for value in allowed_values or ()))
    if len(values) > VALUES_MAX:
        raise BadRequest(f"A tag allows at most {VALUES_MAX} values, or any")
    return TagRecord(
        comment=comment,
        properties=properties,
        allowed_values=values,
        valueless=allowed_values is not None and not values,
    )


def allowed_values(record: TagRecord) -> tuple[str, ...] | None:
    """Return the values that a tag allows: None for any, an empty tuple for none."""
    return record.allowed_values if record.allowed_values or record.valueless else None


@with_placeholders
async def pairs_associate(
    ctx: Context, on: AttachmentTarget, *, adds: tuple[TagValuePair, ...], removes: tuple[TagValuePair, ...]
) -> tuple[str, ...]:
    """Add pairs to an object or column and remove others, atomically; existing or missing pairs are not an error.

    Returns the names of the object's own tags after the change, as far as the caller may load them.

    Raises:
        BadRequest: Pairs contradict each other, or a tag does not allow a value.
        AlreadyExists: A tag is added without a value while values remain.
        IllegalObject: Objects of this kind cannot have tags.
        NotInUse: The metalake is disabled.
        NotFound: The object or a tag is missing.
        PermissionDenied: The caller may not apply a tag, or may not load the object.
    """
    by_name = _by_name(adds, removes)

    def decide(request_view: RequestView) -> Permit[TagPairsChange]:
        request_view.require_in_metalake_use()
        results = for_each(tuple(by_name), lambda name: request_view.look_up(Kind.TAG, (name,), Action.TAG_APPLY))
        tags = tuple(TagPairs(each.entity, *by_name[name]) for name, each in zip(by_name, results, strict=True))
        attachment_point = attachments.attachment_point_require(
            request_view, on, kind=Kind.TAG
        )  # after the tags: a caller who may not apply one must not learn whether the object exists
        here = request_view.require(Action.METADATA_LOAD, attachment_point.chain)
        for tag in tags:
            _check_allowed(tag)
        visible_ids = attachments.visible_ids_of(
            request_view, attachment_point, kind=Kind.TAG, named=[tag.tag for tag in tags]
        )
        command = TagPairsChange(
            target=attachment_point.node,
            field_id=attachment_point.field_id,
            column=attachment_point.column,
            tags=tags,
            visible_ids=visible_ids,
        )
        return request_view.permit(command, *(each.decision for each in results), here, zone=request_view.metalake.id)

    return await ctx.write(on.scope, decide, pairs_change)


def _by_name(
    adds: Iterable[TagValuePair], removes: Iterable[TagValuePair]
) -> dict[str, tuple[tuple[str | None, ...], tuple[str | None, ...]]]:
    """Group the requested values by tag, each pair once. Raises BadRequest if a pair is both added and removed, or
    there are too many.
    """
    added_names, removed_names = dict.fromkeys(adds), dict.fromkeys(removes)
    if len(added_names) + len(removed_names) > attachments.NAMES_MAX:
        raise BadRequest(
            f"{len(added_names) + len(removed_names)} tags in one request are more than the {attachments.NAMES_MAX}"
            " that are allowed"
        )
    both = next(iter(added_names.keys() & removed_names.keys()), None)
    if both is not None:
        text = "without a value" if both.value is None else f"with value {both.value}"
        raise BadRequest(f"Tag {both.name} {text} is both added and removed: leave one of them out")
    requested: dict[str, tuple[tuple[str | None, ...], tuple[str | None, ...]]] = {}
    for name in dict.fromkeys(pair.name for pair in (*added_names, *removed_names)):
        some, dropped = (
            tuple(each.value for each in pairs if each.name == name) for pairs in (added_names, removed_names)
        )
        if None in some and len(some) > 1:
            raise BadRequest(f"Tag {name} is added both with a value and without one: choose")
        for value in (*some, *dropped):
            if value is not None:
                check_tag_value(value)
        requested[name] = some, dropped
    return requested


def _check_allowed(tag: TagPairs) -> None:
    allowed_texts = allowed_values(cast("TagRecord", tag.tag.record))
    if allowed_texts is None:
        return
    for value in tag.adds:
        if value is not None and value not in allowed_texts:
            text = (
                f"one of {', '.join(allowed_texts[:10])}{', …' if len(allowed_texts) > 10 else ''}"
                if allowed_texts
                else "no value"
            )
            raise BadRequest(f"Tag {tag.tag.name} accepts {text}, not {value}")


def pairs_change(tx: Tx, permit: Permit[TagPairsChange]) -> tuple[str, ...]:
    """Write the values, if the object and the tags still exist. Returns the names of the object's own tags.

    Raises AlreadyExists, BadRequest.
    """
    command, rows = permit.command, tx.attachments(Kind.TAG, column=permit.command.column)
    target, field_id = tx.nodes.confirm(command.target), command.field_id
    for tag in command.tags:
        tag_id = tx.nodes.confirm(tag.tag).id
        before = rows.values(tag_id, target.id, field_id=field_id)
        after = apply_pairs(before, adds=tag.adds, removes=tag.removes)
        if after is None and None in tag.adds:
            raise attachments.already_attached_error(
                tag.tag, target, field_id=field_id, how=" with values: remove these, or add one"
            )
        if after == before:
            continue
        if after is None:
            rows.detach(tag_id, target.id, field_id=field_id)
            continue
        if len(after) > VALUES_MAX:
            raise BadRequest(
                f"Tag {tag.tag.name} would have {len(after)} values there; at most {VALUES_MAX} are allowed"
            )
        is_new = rows.attach(tag_id, target.id, field_id=field_id)
        if after != (before or ()):
            rows.set_values(tag_id, target.id, values=after, field_id=field_id, is_change_written=is_new)
    return attachments.names_on(tx, target, kind=Kind.TAG, field_id=field_id, visible_ids=command.visible_ids)


def apply_pairs(
    before: tuple[str, ...] | None, *, adds: Sequence[str | None], removes: Sequence[str | None]
) -> tuple[str, ...] | None:
    """Return a tag's values after removing and adding pairs: None if it is not attached, an empty tuple for no value.

    Also None if the tag is to be added without a value while values remain, which is not allowed.
    """
    names = [value for value in before or () if value not in removes]
    names += [value for value in adds if value is not None and value not in names]
    if None in adds:
        return None if names else ()
    return tuple(names) if names or (before == () and None not in removes) else None
