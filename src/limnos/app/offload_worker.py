# SPDX-License-Identifier: Apache-2.0
"""The worker process of offloaded work: `python -m limnos.app.offload_worker`, with a socket as standard input."""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Callable, Mapping
from contextlib import suppress

from limnos.formats.iceberg.offloaded import OFFLOADED_WORK
from limnos.model.errors import LimnosError
from limnos.sources.wire import serve

MEMORY_BYTES_MAX = 4 << 30
MEMORY = "CHORE_MEMORY_BYTES"
"""Environment variable with the process's memory limit in bytes."""


def main() -> None:
    """Limit the process's memory, then serve requests one after another until the server closes the socket."""
    with suppress(OSError, ValueError):
        most = int(os.environ.get(MEMORY, MEMORY_BYTES_MAX))
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    with suppress(OSError):
        os.nice(5)  # requests that take microseconds have priority
    serve(lambda parts: _run(parts[0].decode(), parts[1:]))


def _run(name: str, parts: list[bytes]) -> list[bytes]:
    try:
        return [b"done", *_offloader(name)[name](*parts)]
    except LimnosError as error:
        cause = f"{type(error.__cause__).__name__}: {error.__cause__}" if error.__cause__ else ""
        return [b"refused", *(each.encode(errors="replace") for each in (error.code, error.message, cause))]
    except RecursionError:
        return [b"refused", b"bad-request", b"The JSON is nested too deeply; make it flatter"]
    except MemoryError:
        return [b"refused", b"bad-request", b"This needs more memory than a request may use; send a smaller one"]
    except Exception as error:  # noqa: BLE001 - sent to the caller, which logs it
        return [b"failed", json.dumps(f"{type(error).__name__}: {error}").encode()]


def _offloader(name: str) -> Mapping[str, Callable[..., list[bytes]]]:
    """Return the functions of the module that implements an offloaded function, found by the prefix of its name.

    The modules of rooms and of scans load slowly, so they are imported on first use.
    """
    if name in OFFLOADED_WORK:
        return OFFLOADED_WORK
    if name.startswith("scan-"):
        from limnos.formats.scans.offloaded import OFFLOADED_WORK as SCANS

        return SCANS
    if name.startswith("restrict-"):
        from limnos.app.restricted_files import RESTRICTED_FILE_FUNCTIONS as RESTRICTING

        return RESTRICTING
    if name.startswith("preview-"):
        from limnos.app.preview_files import PREVIEW_FUNCTIONS as PREVIEWS

        return PREVIEWS
    from limnos.services.request.offloaded_work import room_functions

    return room_functions(name)


if __name__ == "__main__":
    main()
