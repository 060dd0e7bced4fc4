"""Object stores behind one small interface: whole files, written once under fresh names, read and deleted.

May import `model`, and fsspec where a URL needs it. Must not know Iceberg metadata, SQL or HTTP: bytes go in and out as
they are, compression is the caller's, and whether a location is allowed is asked before, not found out here.
"""

from limnos.files.allowed import ENDPOINTS, STORAGE, Allowed, check_usable, everything, root_of
from limnos.files.directories import delete_directory
from limnos.files.entries import Choose, Entry, Mark
from limnos.files.links import leads_within, read_within, refuse_alias
from limnos.files.local import path_of, real, sweep_empty
from limnos.files.locations import (
    allowed_roots,
    check_size,
    check_within,
    is_local,
    is_within,
    normalise,
    parse,
    place_key,
)
from limnos.files.shares import Shares, run_apart
from limnos.files.stores import LOCAL_FILES, FileStore, store_for
from limnos.files.trouble import is_refused

__all__ = [
    "ENDPOINTS",
    "LOCAL_FILES",
    "STORAGE",
    "Allowed",
    "Choose",
    "Entry",
    "FileStore",
    "Mark",
    "Shares",
    "allowed_roots",
    "check_size",
    "check_usable",
    "check_within",
    "delete_directory",
    "everything",
    "is_local",
    "is_refused",
    "is_within",
    "leads_within",
    "normalise",
    "parse",
    "path_of",
    "place_key",
    "read_within",
    "real",
    "refuse_alias",
    "root_of",
    "run_apart",
    "store_for",
    "sweep_empty",
]
