# SPDX-License-Identifier: Apache-2.0
"""Indexing: updates the full-text index in the background, in small steps, never in a commit's transaction.

A step reads the next changes of a zone from the feed. It reads the next of the zone's objects instead if the zone was
never indexed, after a restore, and if the feed was pruned past the position. The transaction that writes the words also
advances the position. Decision record 0148.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from limnos.model.entities import Node
from limnos.model.permits import upkeep_permit
from limnos.rooms.search.services.object_words import PARSED_BYTES, has_columns, index_name, object_words
from limnos.rooms.search.services.spelling import spelled_words
from limnos.services.request.node_services import NodeServices
from limnos.store.activity.search_index import (
    SCAN_BEGIN,
    IndexedText,
    ZoneProgress,
    changed_read,
    scan_ids,
    zones_behind_read,
)
from limnos.store.objects.documents import intact_documents_read
from limnos.store.objects.node_reads import live_nodes_read
from limnos.store.sql import Load
from limnos.store.tx import Tx

ZONES_AT_ONCE: Final = 100
REVISIONS_AT_ONCE: Final = 500
OBJECTS_AT_ONCE: Final = 500
"""The maximum number of objects of a scan whose words one transaction writes."""
WORDS_AT_ONCE: Final = 200_000
"""The number of characters of words after which a transaction of a scan takes no further objects."""
DOCUMENTS_AT_ONCE: Final = 50
"""The number of objects whose documents are read together."""
STORED_WORDS_MAX: Final = 50_000
"""The number of words that a scan remembers as stored."""
PARSED_AT_ONCE: Final = 10
"""The number of documents that are parsed before other requests run."""


async def always_continue() -> bool:
    """Return True: the default for callers that need not stop between two transactions."""
    return True


async def index_step(services: NodeServices, *, may_continue: Callable[[], Awaitable[bool]] = always_continue) -> int:
    """Index the next batch of changes of each zone that is not completely indexed, or all its objects.

    Asks `may_continue` before each transaction, and stops when it returns False.
    Returns the number of zones known to have further changes; 0 if the index is complete.
    """
    behind = await services.gate.look_up(partial(zones_behind_read, limit=ZONES_AT_ONCE))
    left = int(len(behind) == ZONES_AT_ONCE)
    for progress in behind:
        if not await may_continue():
            return left + 1
        if progress.is_lost or progress.scan_after is not None:
            left += await _scan_zone(services, progress, may_continue=may_continue)
        else:
            left += await _index_changes(services, progress)
    return left


async def _index_changes(services: NodeServices, progress: ZoneProgress) -> bool:
    """Index the next changes of a zone, and advance its position. Returns whether more changes remain."""
    since = progress.revision or 0
    until = min(progress.newest, since + REVISIONS_AT_ONCE)
    ids = await services.gate.look_up(partial(changed_read, progress.zone, since=since, until=until))
    new_progress = progress._replace(revision=until)
    words = await _read_words(services, ids)
    await _write_words(services, progress, words=words, reached=new_progress, stored_words=set())
    return until < progress.newest


async def _scan_zone(
    services: NodeServices, progress: ZoneProgress, *, may_continue: Callable[[], Awaitable[bool]]
) -> bool:
    """Index all objects of a zone, from the stored position of its scan on. Returns whether objects remain."""
    after, revision = progress.scan_after, progress.revision
    if progress.is_lost or after is None:
        after, revision = SCAN_BEGIN, progress.newest
    async with services.store.snapshot() as snapshot:
        ids = await scan_ids(snapshot, progress.zone, after=after)
    stored_words: set[str] = set()
    end = 0
    while end < len(ids) or after is not None:
        if end and not await may_continue():
            return True
        words = await _read_words(services, ids[end : end + OBJECTS_AT_ONCE], chars_max=WORDS_AT_ONCE)
        end += len(words.ids)
        after = words.ids[-1] if end < len(ids) else None
        new_progress = progress._replace(indexed_epoch=progress.epoch, revision=revision, scan_after=after)
        if not await _write_words(services, progress, words=words, reached=new_progress, stored_words=stored_words):
            return True
        progress = new_progress
    return False


class _WordBatch(NamedTuple):
    """The words of those objects of `ids` that exist.

    `single` are the words that spelling suggestions may have, which joined words are not: nearly each object has some
    of its own, and to store them would cost more than the rest of the index.
    """

    ids: Sequence[int]
    texts: list[IndexedText]
    single: set[str]


async def _write_words(
    services: NodeServices, progress: ZoneProgress, *, words: _WordBatch, reached: ZoneProgress, stored_words: set[str]
) -> bool:
    """Write the words of some objects, and advance the zone's position from `progress` to `reached`.

    `stored_words` are words that are stored for spelling suggestions already; it is updated. Returns False, and changes
    nothing, if another node has advanced the position meanwhile.
    """
    new_words = words.single - stored_words

    def write(tx: Tx) -> set[str] | None:
        if not tx.search.is_at(progress):
            return None
        tx.search.store_progress(
            reached.zone, epoch=reached.epoch, revision=reached.revision or 0, scan_after=reached.scan_after
        )
        if suggestible := spelled_words(new_words):
            tx.search.add_words(suggestible)
        former = tx.search.replace(words.ids, words.texts)
        removed_words = _words_in(former) - _words_in(words.texts) if former else set[str]()
        if suggestible := spelled_words(removed_words):
            tx.search.forget_words(suggestible)
        return removed_words

    removed_words = await services.store.submit(upkeep_permit("limnos"), write, is_long=True)
    if removed_words is None:
        return False
    if len(stored_words) > STORED_WORDS_MAX:
        stored_words.clear()
    stored_words |= new_words
    stored_words -= removed_words
    return True


def _words_in(texts: Sequence[IndexedText]) -> set[str]:
    """Return the distinct words of indexed objects."""
    return set(" ".join([f"{each.name} {each.columns} {each.comment}" for each in texts]).split(" "))


async def _read_words(services: NodeServices, ids: Sequence[int], *, chars_max: int | None = None) -> _WordBatch:
    """Read the words of objects: of the first ones that have about `chars_max` characters together, or of all."""
    texts: list[IndexedText] = []
    single: set[str] = set()
    end = chars = 0
    while end < len(ids) and (chars_max is None or chars < chars_max):
        nodes, bodies = await services.gate.look_up(partial(_objects_read, ids[end : end + DOCUMENTS_AT_ONCE]))
        end += DOCUMENTS_AT_ONCE
        for number, node in enumerate(nodes, 1):
            body = bodies.get(node.id)
            is_large = body is not None and len(body) > PARSED_BYTES
            words = await asyncio.to_thread(object_words, node, body) if is_large else object_words(node, body)
            name = index_name(words.name, node.kind)
            texts.append(
                IndexedText(object_id=node.id, zone=node.zone, name=name, columns=words.columns, comment=words.comment)
            )
            single.update(words.single)
            chars += len(name) + len(words.columns) + len(words.comment)
            if number % PARSED_AT_ONCE == 0:
                await asyncio.sleep(0)
    return _WordBatch(list(ids[:end]), texts, single)


def _objects_read(ids: Sequence[int]) -> Load[tuple[list[Node], dict[int, bytes]]]:
    nodes = yield from live_nodes_read(list(ids))
    ids_with_columns = [node.id for node in nodes if has_columns(node.kind, node.format)]
    documents = (yield from intact_documents_read(ids_with_columns)) if ids_with_columns else {}
    return nodes, {node_id: document.body for node_id, document in documents.items()}
