# SPDX-License-Identifier: Apache-2.0
"""Object stores and local disks behind one small interface: files are written once under new names, read and deleted.

Must not know Iceberg metadata, SQL or HTTP. Bytes are stored unchanged: the caller compresses them, and checks whether
a location is allowed.
"""

from limnos.files.allowed_storage import ENDPOINTS, STORAGE, AllowedStorage, allow_everything, check_usable, root_of
from limnos.files.directories import delete_directory
from limnos.files.entries import ChooseNames, FileEntry, FileIdentity
from limnos.files.exported_directory import ExportedDirectory
from limnos.files.file_errors import is_refused
from limnos.files.file_keys import FileKey, FileKeys
from limnos.files.file_versions import FileVersion, file_versions
from limnos.files.local import path_of, real_path, sweep_empty
from limnos.files.locations import (
    allowed_roots,
    check_size,
    check_within,
    is_local,
    is_within,
    key_of,
    normalise,
    parse,
    place_key,
)
from limnos.files.ranges import RangeReader, ReadBudget, open_ranges
from limnos.files.stores import LOCAL_FILES, FileStore, store_for
from limnos.files.symbolic_links import LocalRoots, ReadFile, leads_within, read_within, refuse_alias
from limnos.files.thread_shares import ThreadShares, run_in_own_thread
