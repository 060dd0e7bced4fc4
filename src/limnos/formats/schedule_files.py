# SPDX-License-Identifier: Apache-2.0
"""The files of a schedule as bytes of the store.

Must not know the content of the files.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Final

import msgspec

from limnos.formats.iceberg.json_types import preview_value
from limnos.model.errors import BadRequest

FILES_MAX: Final = 200
BYTES_MAX: Final = 512 << 10
"""The maximum size of a schedule's files together, in bytes."""
PATH_MAX: Final = 400


def files_encode(files: Mapping[str, bytes], *, file: str) -> bytes:
    """Check the files of a schedule and encode them for the store; `files_decode` decodes them.

    Raises BadRequest for a path outside of the pipeline's directory, too many or too large files, or if `file` is not
    among them.
    """
    if len(files) > FILES_MAX or sum(map(len, files.values())) > BYTES_MAX:
        raise BadRequest(
            f"A schedule has at most {FILES_MAX} files with {BYTES_MAX >> 10} KiB together: put the pipeline into a"
            " directory of its own, without data"
        )
    for path in files:
        parts = path.split("/")
        if len(path) > PATH_MAX or not path.isprintable() or "\\" in path or {"", ".", ".."} & set(parts):
            raise BadRequest(
                f"{preview_value(path)} is not a path inside of the pipeline's directory: write it as sql/part.sql"
            )
        if any("/".join(parts[:end]) in files for end in range(1, len(parts))):
            raise BadRequest(f"{preview_value(path)} is inside of another file of the schedule")
    if file not in files:
        raise BadRequest(f"{preview_value(file)} is not among the files: send the pipeline's file with them")
    return zlib.compress(msgspec.msgpack.encode(files))


def files_decode(text: bytes) -> dict[str, bytes]:
    """Decode the files of a schedule."""
    return msgspec.msgpack.decode(zlib.decompress(text), type=dict[str, bytes])
