# SPDX-License-Identifier: Apache-2.0
"""The installed rooms: those of this distribution, and those of other packages by their entry point."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import limnos.rooms
from limnos.manifests.installed import entry_points, installed_rooms
from tests.installed import ALL_ROOMS

ROOMS = Path(limnos.rooms.__file__).parent
OWN = tuple(name for name in ALL_ROOMS if (ROOMS / name / "manifest.py").exists())
"""The rooms of this distribution, without those whose folder was deleted."""
LISTING = """
from limnos.manifests.installed import installed_rooms
rooms = installed_rooms()
print(",".join(each.name for each in rooms.manifests), "|", *(f"{each.name}: {each.reason}" for each in rooms.broken))
"""


def install(folder: Path, entry: str, text: str) -> None:
    """Put a package with an entry point into a folder, as an installer leaves it."""
    (folder / "strangers.py").write_text(text, encoding="utf-8")
    info = folder / "strangers-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: strangers\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[limnos.rooms]\n{entry}\n", encoding="utf-8")


def listed(folder: Path) -> tuple[str, str]:
    """Return the installed rooms, and the broken ones, of a process that also sees the folder."""
    program = f"import sys; sys.path.append({str(folder)!r})\n{LISTING}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    names, _, broken = done.stdout.partition("|")
    return names.strip(), broken.strip()


def test_own_rooms_are_installed() -> None:
    """All rooms of this distribution are found, without one of another package."""
    assert tuple(each.name for each in installed_rooms().manifests) == OWN
    assert installed_rooms().broken == ()


def test_another_package_brings_a_room(tmp_path: Path) -> None:
    """The manifest of an entry point is among the installed ones, in the order of names."""
    text = "from limnos.manifests.manifest import Manifest\nROOM = Manifest(name='hills', about='hills')\n"
    install(tmp_path, "hills = strangers:ROOM", text)

    names, broken = listed(tmp_path)

    assert names.split(",") == sorted([*OWN, "hills"])
    assert broken == ""


@pytest.mark.parametrize(
    "entry,text,reason",
    [
        ("hills = strangers:ROOM", "", "AttributeError"),
        ("hills = strangers:ROOM", "import no_such_library", "ModuleNotFoundError"),
        ("hills = strangers:ROOM", "ROOM = 1", "strangers:ROOM is no Manifest"),
        ("hills = strangers:ROOM", "1/0", "ZeroDivisionError"),
        ("dales = strangers:ROOM", "ROOM = Manifest(name='hills', about='')", "named dales, its room hills"),
        pytest.param(
            "jobs = strangers:ROOM",
            "ROOM = Manifest(name='jobs', about='')",
            "two rooms jobs",
            marks=pytest.mark.room("jobs"),
        ),
    ],
)
def test_a_broken_room_is_listed_with_the_reason(tmp_path: Path, entry: str, text: str, reason: str) -> None:
    """An entry point that cannot be used hides no other room, and replaces none."""
    install(tmp_path, entry, f"from limnos.manifests.manifest import Manifest\n{text}\n")

    names, broken = listed(tmp_path)

    assert names == ",".join(OWN)
    assert reason in broken


def test_entry_points_of_no_package_are_found_without_a_search() -> None:
    """Without a package of the group the slow search is not imported."""
    program = (
        "import sys; from limnos.manifests.installed import entry_points;"
        "print(entry_points('limnos.nothing'), 'importlib.metadata' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.split("\n")[0] == "() False"
    assert entry_points("console_scripts")
