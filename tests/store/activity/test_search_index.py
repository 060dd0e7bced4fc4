# SPDX-License-Identifier: Apache-2.0
"""The word index, on both stores: words are found by prefix, replaced and removed; positions of zones and the lease of
the indexer.
"""

from __future__ import annotations

from limnos.model.kinds import Kind
from limnos.store.activity.search_index import (
    SCAN_BEGIN,
    IndexedText,
    ScanPosition,
    known_words_read,
    progress_read,
    scan_read,
    texts_read,
    words_read,
    zones_behind_read,
)
from tests.backends import StoreLab
from tests.store.world import ASTRAL, StoreWorld, add_namespace, add_table

KINDS = [int(kind) for kind in Kind]


def hits(lab: StoreLab, world: StoreWorld, *words: str, names_only: bool = False) -> list[str]:
    """Return the folded names of the nodes in catalog `main` that match."""
    load = words_read(words, names_only=names_only, zones=[world.main.id], kinds=KINDS, limit=10)
    return sorted(each.folded for each in lab.load(load))


def put(lab: StoreLab, world: StoreWorld, *texts: IndexedText, ids: tuple[int, ...] = ()) -> None:
    """Replace the words of a node."""
    lab.write(lambda tx: tx.search.replace(ids or [text.object_id for text in texts], texts), zone=world.lake.id)


def test_words_are_matched_by_prefix_and_replaced(lab: StoreLab, world: StoreWorld) -> None:
    """A node matches if all words match by prefix, in its name only or anywhere. Only its latest words count, and other
    zones do not match.
    """
    zone = world.main.id
    one, two = (lab.write(lambda tx, name=name: add_namespace(tx, world.main, name), zone=zone).id for name in "ab")
    far = lab.write(lambda tx: add_namespace(tx, world.side, "far"), zone=world.side.id).id
    put(
        lab, world, IndexedText(one, zone, "daily flights", "flightid flight id größe", "the bureau s"),
        IndexedText(two, zone, "flights", "", ""), IndexedText(far, world.side.id, "flights", "", ""),
    )  # fmt: skip

    assert hits(lab, world, "fli") == hits(lab, world, "flights", names_only=True) == ["a", "b"]
    assert hits(lab, world, "flights", "bur", "grö") == ["a"]
    assert hits(lab, world, "bureau", names_only=True) == hits(lab, world, "lights") == hits(lab, world, "gro") == []
    put(lab, world, IndexedText(one, zone, "weekly", "", ""))
    assert (hits(lab, world, "daily"), hits(lab, world, "weekly")) == ([], ["a"])
    put(lab, world, ids=(one,))
    assert hits(lab, world, "weekly") == []
    assert set(lab.load(texts_read([one, two]))) == {two}


def test_zone_position_is_tracked_and_lease_is_exclusive(lab: StoreLab, world: StoreWorld) -> None:
    """A zone without a position counts as lost, and one at its newest revision is not behind. Only one holder has the
    lease.
    """
    zone = world.main.id
    lab.write(lambda tx: add_namespace(tx, world.main, "a"), zone=zone)
    (progress,) = lab.load(progress_read([zone]))
    assert (progress.is_lost, progress.behind >= 1) == (True, True)
    assert lab.write(lambda tx: tx.search.is_at(progress), zone=world.lake.id)
    lab.write(
        lambda tx: tx.search.reached(zone, epoch=progress.epoch, revision=progress.newest, scan_after=None),
        zone=world.lake.id,
    )
    (after,) = lab.load(progress_read([zone]))

    assert (after.is_lost, after.behind, lab.write(lambda tx: tx.search.is_at(progress), zone=world.lake.id)) == (
        False, 0, False,
    )  # fmt: skip
    assert zone not in {each.zone for each in lab.load(zones_behind_read(limit=100))}
    assert lab.write(lambda tx: tx.search.lease("x", lease_ms=10_000), zone=world.lake.id)
    assert not lab.write(lambda tx: tx.search.lease("y", lease_ms=10_000), zone=world.lake.id)
    assert lab.write(lambda tx: tx.search.lease("x", lease_ms=10_000), zone=world.lake.id)


def test_position_is_unchanged_only_in_all_its_parts(lab: StoreLab, world: StoreWorld) -> None:
    """A zone's position counts as unchanged only if its epoch, its revision and its scan are those that were read. So
    after a restore no words of another epoch of the store are written.
    """
    zone, scan = world.main.id, ScanPosition("b", 7)

    def is_at(**parts: object) -> bool:
        (progress,) = lab.load(progress_read([zone]))
        return lab.write(lambda tx: tx.search.is_at(progress._replace(**parts)), zone=zone)

    assert is_at()
    lab.write(lambda tx: tx.search.reached(zone, epoch=3, revision=5, scan_after=scan), zone=zone)

    assert is_at(indexed_epoch=3, revision=5, scan_after=scan)
    assert not is_at(indexed_epoch=4, revision=5, scan_after=scan)
    assert not is_at(indexed_epoch=3, revision=6, scan_after=scan)
    assert not is_at(indexed_epoch=3, revision=5, scan_after=ScanPosition("b", 8))
    assert not is_at(indexed_epoch=3, revision=5, scan_after=None)
    assert not is_at(indexed_epoch=None, revision=None, scan_after=None)


def test_word_is_deleted_with_the_last_object_that_has_it(lab: StoreLab, world: StoreWorld) -> None:
    """A word is deleted from the vocabulary with the last object that has it, in whatever field. Words that may occur
    as parts of indexed words are kept.
    """
    zone = world.main.id
    one, two = (lab.write(lambda tx, name=name: add_namespace(tx, world.main, name), zone=zone).id for name in "ab")
    words = ["bureau", "d'or", "flights", "größe"]
    put(
        lab, world, IndexedText(one, zone, "flights", "größe", "bureau d'or"), IndexedText(two, zone, "", "", "flights")
    )
    lab.write(lambda tx: tx.search.add_words(words), zone=world.lake.id)

    former = lab.write(lambda tx: tx.search.replace([one], []), zone=world.lake.id)
    lab.write(lambda tx: tx.search.forget_words(words), zone=world.lake.id)

    assert [each.comment for each in former] == ["bureau d'or"]
    assert lab.load(known_words_read(words)) == ["d'or", "flights"]
    put(lab, world, ids=(two,))
    lab.write(lambda tx: tx.search.forget_words(words), zone=world.lake.id)
    assert lab.load(known_words_read(words)) == ["d'or"]


def test_scan_reads_every_live_object_of_a_zone_once(lab: StoreLab, world: StoreWorld) -> None:
    """Pages of a scan have each live object of the zone once, also objects of one folded name, in the order of folded
    names and ids.
    """
    zone = world.main.id
    parents = [lab.write(lambda tx, name=name: add_namespace(tx, world.main, name), zone=zone) for name in "Zab"]
    equal = [lab.write(lambda tx, each=each: add_table(tx, each, "Same"), zone=zone).id for each in parents]
    astral, high = (
        lab.write(lambda tx, name=name: add_namespace(tx, world.main, name), zone=zone).id
        for name in (ASTRAL, "\ufffd")
    )
    dropped_node = lab.write(lambda tx: add_namespace(tx, world.main, "gone"), zone=zone)
    lab.write(lambda tx: tx.nodes.drop(dropped_node), zone=zone)
    lab.write(lambda tx: add_namespace(tx, world.side, "far"), zone=world.side.id)

    seen, after, sizes = list[ScanPosition](), SCAN_BEGIN, list[int]()
    while page := lab.load(scan_read(zone, after=after, limit=2)):
        seen += page
        sizes.append(len(page))
        after = page[-1]

    z, a, b = (each.id for each in parents)
    assert seen == [
        ("a", a),
        ("b", b),
        *(("same", each) for each in equal),
        ("z", z),
        ("\ufffd", high),
        (ASTRAL, astral),
    ]
    assert sizes == [2, 2, 2, 2]


def test_position_of_a_scan_is_stored_and_that_of_an_older_release_is_the_beginning(
    lab: StoreLab, world: StoreWorld
) -> None:
    """A scan continues at its stored position. If a node of an older release continued it, by ids, it begins again."""
    zone, position = world.main.id, ScanPosition("t\u00e4gs", 17)
    lab.write(
        lambda tx: tx.search.reached(zone, epoch=lab.epoch(), revision=1, scan_after=position), zone=world.lake.id
    )
    (stored,) = lab.load(progress_read([zone]))
    is_there = lab.write(lambda tx: tx.search.is_at(stored), zone=world.lake.id)
    lab.database.sql("UPDATE search_position SET scan_after = 500")
    (older,) = lab.load(progress_read([zone]))

    assert (stored.scan_after, is_there, older.scan_after) == (position, True, SCAN_BEGIN)
    assert not lab.write(lambda tx: tx.search.is_at(stored), zone=world.lake.id)
