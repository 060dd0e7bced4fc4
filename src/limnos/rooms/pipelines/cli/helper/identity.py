# SPDX-License-Identifier: Apache-2.0
"""Which helper may answer a command, and whether its code is still that of the installed files.

The *key* of a helper is a keyed digest of all that its Java machines inherit and cannot change: the interpreter, the
working directory, the environment, the server and the identity of the credential. The *fingerprint* is a digest of the
installed files. A command asks the helper of its key, which refuses another fingerprint and ends.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import limnos

_VOLATILE_NAMES = """
_ PWD OLDPWD SHLVL TERM COLORTERM COLUMNS LINES WINDOWID DISPLAY WAYLAND_DISPLAY TMUX TMUX_PANE STY WINDOW PS1 PS2
LS_COLORS HISTFILE HISTSIZE HISTCONTROL EDITOR VISUAL PAGER LESS DBUS_SESSION_BUS_ADDRESS SHELL_SESSION_ID INVOCATION_ID
LIMNOS_OUTPUT LIMNOS_PIPELINE_HELPER LIMNOS_PIPELINE_HELPER_IDLE_S PYTEST_CURRENT_TEST
"""
_VOLATILE = frozenset(_VOLATILE_NAMES.split())
_VOLATILE_PREFIXES = ("SSH_", "XDG_SESSION_", "TERM_", "VTE_", "KITTY_", "ITERM_", "VSCODE_")
"""Variables that differ between terminals, and that no Java machine reads. Another variable needs another helper."""
CREDENTIALS = frozenset({"LIMNOS_TOKEN"})
"""Variables that a helper does not inherit: a command passes them with its request."""


def helper_key(secret: bytes, *, environ: Mapping[str, str], access: Sequence[str]) -> str:
    """Return the name of the helper for this process. `access` describes server and credential.

    Raises OSError if the working directory does not exist.
    """
    digest = hashlib.blake2b(key=secret, digest_size=16)
    here = Path.cwd().stat()
    parts = [
        sys.executable,
        sys.prefix,
        sys.version,
        repr(sys.flags),
        *sys.path,
        str(Path.cwd()),
        f"{here.st_dev}:{here.st_ino}",
        *access,
        *(f"{name}={value}" for name, value in sorted(environ.items()) if not _is_volatile(name)),
    ]
    for part in parts:
        data = os.fsencode(part)
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


def fingerprint() -> str:
    """Return a digest of the files of this package, of the installed packages' names, and of the interpreter."""
    digest = hashlib.blake2b(digest_size=16)
    for line in (*_files_of(Path(limnos.__file__).parent), *_packages(), _state(sys.executable)):
        digest.update(os.fsencode(line) + b"\0")
    return digest.hexdigest()


def loaded_files() -> dict[str, str]:
    """Return the state of each file whose module this process has loaded."""
    paths = {str(file) for module in list(sys.modules.values()) if (file := getattr(module, "__file__", None))}
    return {path: _state(path) for path in paths}


def are_unchanged(states: Mapping[str, str]) -> bool:
    """Return whether all files are as they were in `states`."""
    return all(_state(path) == state for path, state in states.items())


def _is_volatile(name: str) -> bool:
    return name in _VOLATILE or name.startswith(_VOLATILE_PREFIXES)


def _state(path: str) -> str:
    try:
        status = Path(path).stat()
    except OSError:
        return "absent"
    return f"{status.st_dev}:{status.st_ino}:{status.st_size}:{status.st_mtime_ns}"


def _files_of(directory: Path) -> Iterator[str]:
    with os.scandir(directory) as entries:
        every = sorted(entries, key=lambda entry: entry.name)
    for entry in every:
        if entry.is_dir(follow_symlinks=False):
            if entry.name != "__pycache__":
                yield from _files_of(Path(entry.path))
        elif not entry.name.endswith(".pyc"):
            status = entry.stat()
            yield f"{entry.path} {status.st_size} {status.st_mtime_ns}"


def _packages() -> Iterator[str]:
    """Yield the names and times of what installers write: metadata and path files of each directory of packages."""
    for directory in sorted({each for each in sys.path if each.endswith(("site-packages", "dist-packages"))}):
        try:
            with os.scandir(directory) as entries:
                every = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in every:
            if entry.name.endswith((".dist-info", ".egg-info", ".pth", ".egg-link")):
                yield f"{entry.path} {entry.stat().st_mtime_ns}"
