# SPDX-License-Identifier: Apache-2.0
"""Indexing: updates the full-text index in the background, in small steps, never in a commit's transaction.

May import the layers below. A step reads the next changes of a zone from the feed. It reads the next of the zone's
objects instead if the zone was never indexed, after a restore, and if the feed was pruned past the position. The
transaction that writes the words also advances the position. Decision record 0148.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final

from limnos.model.entities import Node
from limnos.model.permits import upkeep_permit
from limnos.services.request.node_services import NodeServices
from limnos.services.search.object_words import PARSED_BYTES, has_columns, index_name, object_words
from limnos.services.search.spelling import spelled_words
from limnos.store.activity.search_index import (
    SCAN_BEGIN,
    IndexedText,
    ZoneProgress,
    changed_read,
    scan_read,
    zones_behind_read,
)
from limnos.store.objects.documents import intact_documents_read
from limnos.store.objects.name_search import UNFOLDED_AT_ONCE, names_fold
from limnos.store.objects.nodes import live_nodes_read
from limnos.store.sql import Load
from limnos.store.tx import Tx

ZONES_AT_ONCE: Final = 100
REVISIONS_AT_ONCE: Final = 500
OBJECTS_AT_ONCE: Final = 100
"""The number of objects whose documents are read together."""
PARSED_AT_ONCE: Final = 10
"""The number of documents that are parsed before other requests run."""


async def index_step(services: NodeServices) -> int:
    """Index the next batch of changes of each zone that is not completely indexed.

    Returns the number of zones known to have further changes; 0 if the index is complete.
    """
    behind = await services.gate.look_up(partial(zones_behind_read, limit=ZONES_AT_ONCE))
    left = [await _index_zone(services, progress) for progress in behind]
    return sum(left) + (len(behind) == ZONES_AT_ONCE)


async def _index_zone(services: NodeServices, progress: ZoneProgress) -> bool:
    """Index the next batch of a zone, and advance its position. Returns whether more changes or objects remain."""
    scan_after, revision = progress.scan_after, progress.revision
    if progress.is_lost:
        await _fold_names(services)
        scan_after, revision = SCAN_BEGIN, progress.newest
    if scan_after is not None:
        page = await services.gate.look_up(partial(scan_read, progress.zone, after=scan_after, limit=OBJECTS_AT_ONCE))
        ids = [each.object_id for each in page]
        until = progress.newest if revision is None else revision
        following = page[-1] if len(page) == OBJECTS_AT_ONCE else None
    else:
        since = revision or 0
        until, following = min(progress.newest, since + REVISIONS_AT_ONCE), None
        ids = await services.gate.look_up(partial(changed_read, progress.zone, since=since, until=until))
    texts: list[IndexedText] = []
    for begin in range(0, len(ids), OBJECTS_AT_ONCE):
        texts += await _texts(services, ids[begin : begin + OBJECTS_AT_ONCE])

    words = _suggestible_words(texts)

    def write(tx: Tx) -> None:
        if tx.search.is_at(progress):
            tx.search.reached(progress.zone, epoch=progress.epoch, revision=until, scan_after=following)
            if words:
                tx.search.add_words(words)
            # Last, because on SQLite the next statement would write out the full-text entries, not the commit's thread.
            removed = _suggestible_words(tx.search.replace(ids, texts)) - words
            if removed:
                tx.search.forget_words(removed)

    await services.store.submit(upkeep_permit("limnos"), write)
    return following is not None or until < progress.newest


async def _fold_names(services: NodeServices) -> None:
    """Fill in folded names that an older release left empty: objects without one have no place in a scan."""
    while await services.store.submit(upkeep_permit("limnos"), names_fold) == UNFOLDED_AT_ONCE:
        pass


def _suggestible_words(texts: Sequence[IndexedText]) -> set[str]:
    """Return the words of indexed objects that spelling suggestions may use."""
    return spelled_words(text for each in texts for text in (each.name, each.columns, each.comment))


async def _texts(services: NodeServices, ids: Sequence[int]) -> list[IndexedText]:
    nodes, bodies = await services.gate.look_up(partial(_objects_read, ids))
    texts: list[IndexedText] = []
    for number, node in enumerate(nodes, 1):
        body = bodies.get(node.id)
        is_large = body is not None and len(body) > PARSED_BYTES
        words = await asyncio.to_thread(object_words, node, body) if is_large else object_words(node, body)
        name = index_name(words.name, node.kind)
        texts.append(IndexedText(node.id, node.zone, name, words.columns, words.comment))
        if number % PARSED_AT_ONCE == 0:
            await asyncio.sleep(0)
    return texts


def _objects_read(ids: Sequence[int]) -> Load[tuple[list[Node], dict[int, bytes]]]:
    nodes = yield from live_nodes_read(ids)
    described = [node.id for node in nodes if has_columns(node.kind, node.format)]
    documents = (yield from intact_documents_read(described)) if described else {}
    return nodes, {node_id: document.body for node_id, document in documents.items()}
