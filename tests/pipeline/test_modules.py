# SPDX-License-Identifier: Apache-2.0
"""Imports from pipelines' directories, and the code of functions as text."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from limnos.pipeline.modules import code_of, code_of_file, enter_directory, import_module


def written(directory: Path, **modules: str) -> Path:
    """Write modules; `a__b` is the module `b` of the package `a`."""
    for name, text in modules.items():
        path = directory.joinpath(*name.split("__")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (1, 1))  # all texts of one length look the same to a cache of compiled modules
    return directory


def function(directory: Path, *, again: bool = True, module: str = "f") -> Callable[..., object]:
    """Import the function `make` of a module."""
    enter_directory(directory, again=again)
    result: Callable[..., object] = import_module(module, directory).make
    return result


def test_changed_file_is_imported_again(tmp_path: Path) -> None:
    """A file with another text of the same length and time is imported again; the older function keeps its code."""
    first = function(written(tmp_path, f="import g\ndef make(): return g.X", g="X = 1"))
    before = code_of(first)
    second = function(written(tmp_path, g="X = 2"))

    assert (first(), second()) == (1, 2)
    assert (code_of(first), "X = 2" in code_of(second)) == (before, True)


def test_modules_of_other_pipelines_are_not_seen(tmp_path: Path) -> None:
    """Each directory has its own modules, also those that a function imports when it is called."""
    late = "def make():\n    import g\n    return g.X"
    one, two = (written(tmp_path / str(x), f=late, g=f"X = {x}") for x in (1, 2))
    results = [function(directory, again=False)() for directory in (one, two, one)]

    assert results == [1, 2, 1]
    enter_directory(tmp_path, again=True)
    assert "g" not in sys.modules


CHANGES = {
    "the function": ({"f": "import g\ndef make(): return 2 + g.X"}, True),
    "a comment": ({"f": "import g  # why\n\n\ndef make():\n    return g.X"}, False),
    "an imported module": ({"g": "X = 7"}, True),
    "a package that is imported when it is called": ({"p__q": "from . import r\nY = 9"}, True),
    "a module that a package imports": ({"p__r": "Z = 9"}, True),
    "another module": ({"other": "X = 2"}, False),
}


@pytest.mark.parametrize("what", CHANGES)
def test_code_has_all_imported_modules_of_the_directory(tmp_path: Path, what: str) -> None:
    """The code of a function changes with the modules that it imports, directly or not, and with nothing else."""
    texts = {
        "f": "import g\ndef make(): return g.X",
        "g": "import os\ndef late():\n    from p import q\nX = 1",
        "p____init__": "",
        "p__q": "from . import r\nY = 1",
        "p__r": "Z = 1",
        "other": "X = 1",
    }
    before = code_of(function(written(tmp_path, **texts)))
    edits, changes = CHANGES[what]

    after = code_of(function(written(tmp_path, **edits)))

    assert (before != after) is changes
    assert code_of_file("f", tmp_path) == after


def test_functions_that_are_not_of_a_directory_are_compiled_code() -> None:
    """The code of another function has the functions and values that it names, its defaults and its closure."""

    def made(value: int, by: int = 2, *, body: str = "value * by + offset") -> Callable[..., object]:
        names: dict[str, object] = {"offset": value}
        exec(f"def helper(value, by): return {body}\ndef make(value, by={by}): return helper(value, by)", names)
        result = names["make"]
        assert callable(result)
        return result

    assert code_of(made(1)) == code_of(made(1)) == code_of(functools.partial(made(1), 3))
    assert len({code_of(each) for each in (made(1), made(2), made(1, 3), made(1, body="value - by"))}) == 4
    assert code_of(len) == "builtins.len"
