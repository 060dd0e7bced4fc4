# SPDX-License-Identifier: Apache-2.0
"""The word index, on both stores: words are found by prefix, replaced and removed; positions of zones and the lease of
the indexer.
"""

from __future__ import annotations

from limnos.model.kinds import Kind
from limnos.store.activity.search_index import (
    SCAN_BEGIN,
    IndexedText,
    known_words_read,
    progress_read,
    scan_ids,
    texts_read,
    words_read,
    zones_behind_read,
)
from tests.backends import StoreLab
from tests.store.world import StoreWorld, add_namespace, add_table

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
        lab,
        world,
        IndexedText(
            object_id=one, zone=zone, name="daily flights", columns="flightid flight id größe", comment="the bureau s"
        ),
        IndexedText(object_id=two, zone=zone, name="flights", columns="", comment=""),
        IndexedText(object_id=far, zone=world.side.id, name="flights", columns="", comment=""),
    )

    assert hits(lab, world, "fli") == hits(lab, world, "flights", names_only=True) == ["a", "b"]
    assert hits(lab, world, "flights", "bur", "grö") == ["a"]
    assert hits(lab, world, "bureau", names_only=True) == hits(lab, world, "lights") == hits(lab, world, "gro") == []
    put(lab, world, IndexedText(object_id=one, zone=zone, name="weekly", columns="", comment=""))
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
        lambda tx: tx.search.store_progress(zone, epoch=progress.epoch, revision=progress.newest, scan_after=None),
        zone=world.lake.id,
    )
    (after,) = lab.load(progress_read([zone]))

    assert (after.is_lost, after.behind, lab.write(lambda tx: tx.search.is_at(progress), zone=world.lake.id)) == (
        False,
        0,
        False,
    )
    assert zone not in {each.zone for each in lab.load(zones_behind_read(limit=100))}
    assert lab.write(lambda tx: tx.search.lease("x", lease_ms=10_000), zone=world.lake.id)
    assert not lab.write(lambda tx: tx.search.lease("y", lease_ms=10_000), zone=world.lake.id)
    assert lab.write(lambda tx: tx.search.lease("x", lease_ms=10_000), zone=world.lake.id)


def test_position_is_unchanged_only_in_all_its_parts(lab: StoreLab, world: StoreWorld) -> None:
    """A zone's position counts as unchanged only if its epoch, its revision and its scan are those that were read. So
    after a restore no words of another epoch of the store are written.
    """
    zone, scan = world.main.id, 7

    def is_at(**parts: object) -> bool:
        (progress,) = lab.load(progress_read([zone]))
        return lab.write(lambda tx: tx.search.is_at(progress._replace(**parts)), zone=zone)

    assert is_at()
    lab.write(lambda tx: tx.search.store_progress(zone, epoch=3, revision=5, scan_after=scan), zone=zone)

    assert is_at(indexed_epoch=3, revision=5, scan_after=scan)
    assert not is_at(indexed_epoch=4, revision=5, scan_after=scan)
    assert not is_at(indexed_epoch=3, revision=6, scan_after=scan)
    assert not is_at(indexed_epoch=3, revision=5, scan_after=8)
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
        lab,
        world,
        IndexedText(object_id=one, zone=zone, name="flights", columns="größe", comment="bureau d'or"),
        IndexedText(object_id=two, zone=zone, name="", columns="", comment="flights"),
    )
    lab.write(lambda tx: tx.search.add_words(words), zone=world.lake.id)

    former = lab.write(lambda tx: tx.search.replace([one], []), zone=world.lake.id)
    lab.write(lambda tx: tx.search.forget_words(words), zone=world.lake.id)

    assert [each.comment for each in former] == ["bureau d'or"]
    assert lab.load(known_words_read(words)) == ["d'or", "flights"]
    put(lab, world, ids=(two,))
    lab.write(lambda tx: tx.search.forget_words(words), zone=world.lake.id)
    assert lab.load(known_words_read(words)) == ["d'or"]


def test_scan_reads_the_live_objects_of_a_zone_in_the_order_of_ids(lab: StoreLab, world: StoreWorld) -> None:
    """A scan has each live object of its zone that follows its position, whatever the order of the names."""
    zone = world.main.id
    spaces = [lab.write(lambda tx, name=name: add_namespace(tx, world.main, name), zone=zone) for name in "Zab"]
    tables = [lab.write(lambda tx, each=each: add_table(tx, each, "Same"), zone=zone).id for each in spaces]
    dropped_node = lab.write(lambda tx: add_namespace(tx, world.main, "gone"), zone=zone)
    lab.write(lambda tx: tx.nodes.drop(dropped_node), zone=zone)
    lab.write(lambda tx: add_namespace(tx, world.side, "far"), zone=world.side.id)
    ids = sorted([*(each.id for each in spaces), *tables])

    async def read(after: int) -> list[int]:
        async with lab.store.snapshot() as snapshot:
            return list(await scan_ids(snapshot, zone, after=after))

    assert lab.run(read(SCAN_BEGIN)) == ids
    assert lab.run(read(ids[1])) == ids[2:]
    assert lab.run(read(ids[-1])) == []


def test_position_of_a_scan_is_stored_and_that_of_an_older_release_is_the_beginning(
    lab: StoreLab, world: StoreWorld
) -> None:
    """A scan continues at its stored position, and begins again if a node of an older release went on by names."""
    zone = world.main.id
    lab.write(
        lambda tx: tx.search.store_progress(zone, epoch=lab.epoch(), revision=1, scan_after=17), zone=world.lake.id
    )
    (stored,) = lab.load(progress_read([zone]))
    is_there = lab.write(lambda tx: tx.search.is_at(stored), zone=world.lake.id)
    lab.database.sql("UPDATE search_position SET scan_after = 0, scan_folded = 'm', scan_id = 17")
    (older,) = lab.load(progress_read([zone]))

    assert (stored.scan_after, is_there, older.scan_after) == (17, True, SCAN_BEGIN)
    assert not lab.write(lambda tx: tx.search.is_at(stored), zone=world.lake.id)


def test_words_that_begin_other_words_find_and_correct_as_before(lab: StoreLab, world: StoreWorld) -> None:
    """The full-text index lacks a word that another word of the same field begins with. Searches find it all the same,
    and it stays in the vocabulary while an object has it.
    """
    zone = world.main.id
    one, two = (lab.write(lambda tx, name=name: add_namespace(tx, world.main, name), zone=zone).id for name in "ab")
    put(
        lab,
        world,
        IndexedText(object_id=one, zone=zone, name="flight", columns="", comment=""),
        IndexedText(object_id=two, zone=zone, name="flight id flightid", columns="größe x größen", comment="flight"),
    )
    lab.write(lambda tx: tx.search.add_words(["flight", "flightid"]), zone=world.lake.id)

    assert hits(lab, world, "flight", "id", names_only=True) == hits(lab, world, "größe") == ["b"]
    assert hits(lab, world, "flight") == ["a", "b"]
    assert lab.load(texts_read([two]))[two].name == "flight id flightid"
    put(lab, world, ids=(one,))
    lab.write(lambda tx: tx.search.forget_words(["flight", "flightid"]), zone=world.lake.id)
    assert lab.load(known_words_read(["flight", "flightid"])) == ["flight", "flightid"]
    put(lab, world, ids=(two,))
    lab.write(lambda tx: tx.search.forget_words(["flight", "flightid"]), zone=world.lake.id)
    assert hits(lab, world, "fli") == lab.load(known_words_read(["flight", "flightid"])) == []
