# SPDX-License-Identifier: Apache-2.0
"""Topics of external systems: list, load, create, alter, drop.

Privileges are checked on the topic's path in the tree. Each function decides first, on one request view, and then calls
the source. Sources store no comments of topics: a topic's placeholder node stores its comment.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, cast

from limnos.access.actions import Action
from limnos.model.entities import Node
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.model.records import TopicRecord
from limnos.names.path import Levels
from limnos.services.federation import source_objects
from limnos.services.federation.connector_values import topic_of
from limnos.services.federation.placeholder_nodes import (
    PlaceholderCreate,
    SourceLookup,
    find_source_object,
    placeholder_insert_current,
    placeholder_permit,
    submit_source_change,
)
from limnos.services.federation.sources import ask_source, shown_after_change
from limnos.services.request.context import Context
from limnos.services.request.property_edits import PropertyEdits
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.sources.connectors.capabilities import SourceTopicInfo, with_topics
from limnos.store.tx import Tx


class FederatedTopic(NamedTuple):
    """A topic of an external system, and its placeholder node."""

    info: SourceTopicInfo
    node: Node | None
    catalog: Node

    @property
    def comment(self) -> str | None:
        """The topic's comment, which the placeholder node stores."""
        return None if self.node is None else cast("TopicRecord", self.node.record).comment


def topics_visible(request_view: RequestView, schema: Levels) -> source_objects.VisibleSourceNames:
    """Authorize a list of a schema's topics. Returns the filter for visible names. Raises PermissionDenied."""
    return source_objects.namespace_objects_visible(request_view, schema, kind=Kind.TOPIC, action=Action.TOPIC_LIST)


async def topics_list(ctx: Context, seen: source_objects.VisibleSourceNames) -> list[str]:
    """List a schema's topics in the source, and return the names that are visible to the caller. Raises NotFound for
    the schema.
    """
    return await source_objects.names_in_source(
        ctx, seen, visible=topics_visible, of=with_topics, question=lambda catalog: catalog.topic_names(seen.path[0])
    )


async def topic_load(ctx: Context, source_lookup: SourceLookup) -> FederatedTopic:
    """Return a topic from the external system, once access is granted. Raises NotFound, PermissionDenied."""
    schema, name = source_lookup.path
    current, source = await source_objects.read_in_source(
        ctx, source_lookup, of=with_topics, question=lambda catalog: topic_of(catalog.topic_load(schema, name))
    )
    return FederatedTopic(source, current.node, current.origin.catalog)


async def topic_create(
    ctx: Context, scope: RequestScope, *, path: Levels, comment: str | None, properties: dict[str, str]
) -> FederatedTopic:
    """Create a topic in the source; the caller owns its placeholder node.

    Raises AlreadyExists, NotFound for the schema, BadRequest for an invalid name or setting, UnsupportedOperation if
    the source has no topics, PermissionDenied.
    """
    schema, name = path
    created = await source_objects.create_in_source(
        ctx,
        scope,
        kind=Kind.TOPIC,
        path=path,
        action=Action.TOPIC_CREATE,
        of=with_topics,
        question=lambda catalog: catalog.topic_create(schema, name, properties=properties),
        record=TopicRecord(comment, {}),
        load=lambda catalog: topic_of(catalog.topic_load(schema, name)),
    )
    return FederatedTopic(*created)


async def topic_alter(ctx: Context, scope: RequestScope, *, path: Levels, edits: PropertyEdits) -> FederatedTopic:
    """Change a topic's properties in the source, and its comment on the placeholder node.

    Raises NotFound, NotInUse, PermissionDenied, BadRequest for an invalid setting, UnsupportedOperation if the source
    has no topics, and the source's errors.
    """
    schema, name = path

    def decide(request_view: RequestView) -> tuple[SourceLookup, Permit[tuple[PlaceholderCreate, PropertyEdits]]]:
        lookup = find_source_object(request_view, Kind.TOPIC, path=path, action=Action.TOPIC_ALTER)
        permit = placeholder_permit(request_view, Kind.TOPIC, path=path, decision=lookup.decision, made_here=False)
        return lookup, permit.about((permit.command, edits))

    source_lookup, permit = await ctx.read(scope, decide)
    if edits.sets or edits.removes:
        await ask_source(
            ctx,
            source_lookup.origin,
            of=with_topics,
            question=lambda catalog: catalog.topic_alter(schema, name, sets=edits.sets, removes=edits.removes),
            changes=True,
        )
        altered_topic = await shown_after_change(topic_load(ctx, source_lookup))
    else:
        altered_topic = await topic_load(ctx, source_lookup)
    if edits.comment is None and not edits.clears_comment:
        return altered_topic
    return altered_topic._replace(node=await submit_source_change(ctx, permit, mutation=topic_annotate))


def topic_annotate(tx: Tx, permit: Permit[tuple[PlaceholderCreate, PropertyEdits]]) -> Node | None:
    """Write the comment to the topic's placeholder node, which is created if it is missing. Returns the node; None if
    the catalog was dropped.
    """
    command, edits = permit.command
    node = placeholder_insert_current(tx, permit.about(command))
    if node is None:
        return None
    record = cast("TopicRecord", node.record)
    tx.nodes.write_record(node, replace(record, comment=edits.edited_comment(record.comment)))
    return tx.nodes.by_id(node.id)


async def topic_drop(ctx: Context, scope: RequestScope, *, path: Levels) -> None:
    """Drop a topic in the source with its messages, and its placeholder node.

    Raises NotFound, ProtectedObject, UnsupportedOperation if the source forbids drops of topics, PermissionDenied.
    """
    schema, name = path
    await source_objects.drop_in_source(
        ctx,
        scope,
        kind=Kind.TOPIC,
        path=path,
        action=Action.TOPIC_DROP,
        of=with_topics,
        question=lambda catalog: catalog.topic_drop(schema, name),
    )
