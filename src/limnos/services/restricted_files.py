"""What was shown of restricted tables, taken away when nobody can be reading it any more.

May import the rooms below. A task that comes round: in each catalog's warehouse a place is set aside (`services.restricting`), whose first directories are the periods in which files were
made. What was made in this period and in the one before stays.
"""

from __future__ import annotations

import shutil
from functools import partial
from typing import TYPE_CHECKING, Final

from limnos.files import is_local, path_of, store_for
from limnos.model.errors import LimnosError
from limnos.services.places import SET_ASIDE
from limnos.services.restricting import PERIOD_MS
from limnos.store.nodes import catalogs_read
from limnos.telemetry.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limnos.services.work import Beat, Work
    from limnos.store.tx import Tx

log = get_logger("limnos.restricted_files")
PRUNE_RESTRICTED: Final = "prune-restricted"
PRUNE_RESTRICTED_EVERY_S: Final = 3600.0


async def restricted_prune(work: Work, *, now_ms: int) -> int:
    """Delete what is of older periods, in every catalog; returns how many periods went. A store that does not answer is left for the next round."""
    gone = 0
    for home, properties in await work.submit(partial(_homes, work)):
        try:
            gone += await work.apart(partial(prune, home, properties=properties, oldest=now_ms // PERIOD_MS - 1))
        except LimnosError as error:
            log.warning("what was shown of restricted tables stays for now", home=home, error=error.message)
    return gone


def _homes(work: Work, tx: Tx) -> list[tuple[str, Mapping[str, str]]]:
    places = [work.place(record, node_id) for node_id, record in catalogs_read(tx)]
    return list(
        {place.home: (place.home, place.catalog.properties) for place in places if place.home is not None}.values()
    )


def prune(home: str, beat: Beat, *, properties: Mapping[str, str], oldest: int) -> int:
    """Delete what is of periods before `oldest` below a warehouse; returns how many went. Raises StorageFailed, Unavailable."""
    store, aside = store_for(home, properties), f"{home}/{SET_ASIDE}"
    old = [name for name in store.directories(aside) if name.isdigit() and int(name) < oldest]
    for count, name in enumerate(old):
        beat(count)
        if is_local(home):
            shutil.rmtree(path_of(f"{aside}/{name}"), ignore_errors=True)
            continue
        for file in store.below(f"{aside}/{name}"):
            store.delete(file)
    return len(old)
