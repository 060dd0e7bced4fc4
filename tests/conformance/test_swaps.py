# SPDX-License-Identifier: Apache-2.0
"""`conformance/run swaps`: the places that it finds, the exchange of two arguments, and the tests that it chooses."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.swaps.__main__ import draw
from conformance.swaps.places import Place, Swap, exchange, find_places
from conformance.swaps.selection import TestSelection
from conformance.swaps.trials import TrialTree

pytestmark = pytest.mark.heavy

ROOT = Path(__file__).parents[2]
CODE = """
from typing import NamedTuple, NewType

Key = NewType("Key", str)

class Pair(NamedTuple):
    left: str
    right: str

def join(left: str, right: str, *more: str, sep: str = "", end: str = "") -> str:
    return left

def typed(left: str, right: Key) -> str:
    return left

def use(a: str, b: str) -> object:
    join(a, b)
    join(a, b, a, b)
    join(*[a, b], sep=a, end=b)
    join("e", join(a, a)).join([a]).partition(b)
    join("é", b)
    typed(a, Key(b))
    f"{join(a, b)}"
    print(a, b)
    return Pair(right=b, left=a)
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small product with calls."""
    root = tmp_path_factory.mktemp("tree")
    folder = root / "src" / "product"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "calls.py").write_text(CODE)
    (root / "pyproject.toml").write_text("[tool.mypy]\nstrict = true\nnamespace_packages = true\n")
    return root


@pytest.fixture(scope="module")
def places(tree: Path) -> list[Place]:
    """The places of the small product."""
    return find_places(tree, "product")


def swap_at(places: list[Place], tree: Path, line: str, *, is_keyword: bool = False) -> list[Swap | None]:
    """Exchange the arguments of the places in a line of the code."""
    number = CODE.split("\n").index(f"    {line}") + 1
    chosen = [each for each in places if each.line == number and each.is_keyword == is_keyword]
    return [exchange((tree / each.path).read_bytes(), each) for each in chosen]


def test_neighbours_of_one_type_are_a_place(places: list[Place], tree: Path) -> None:
    """Two texts by position or by keyword are a place; values of `*args`, a NewType and foreign functions are not."""
    lines = CODE.split("\n")
    by_position = [lines[each.line - 1].strip() for each in places if not each.is_keyword]
    by_keyword = [lines[each.line - 1].strip() for each in places if each.is_keyword]

    assert by_position == [
        "join(a, b)",
        "join(a, b, a, b)",
        'join("e", join(a, a)).join([a]).partition(b)',
        'join("e", join(a, a)).join([a]).partition(b)',
        'join("é", b)',
        'f"{join(a, b)}"',
    ]
    assert by_keyword == ["join(*[a, b], sep=a, end=b)", "return Pair(right=b, left=a)"]
    assert {each.callee for each in places} == {"product.calls.join", "product.calls.Pair"}


def test_exchange_moves_values_alone(places: list[Place], tree: Path) -> None:
    """An exchange puts each argument in the place of the other; of keyword arguments, only the values move."""
    (swap,) = swap_at(places, tree, "join(a, b)")
    (pair,) = swap_at(places, tree, "return Pair(right=b, left=a)", is_keyword=True)

    assert swap is not None
    assert swap.text.decode() == CODE.replace(
        "    join(a, b)\n", "    (__import__('limnos_swap_marker').note() or join)(b, a)\n", 1
    )
    assert pair is not None
    assert b"note() or Pair)(right=a, left=b)" in pair.text


def test_exchange_without_effect_is_none(places: list[Place], tree: Path) -> None:
    """Equal arguments are not exchanged, nor calls inside of formatted texts or beside characters beyond ASCII. The
    outer of two calls in a line is.
    """
    outer, inner = swap_at(places, tree, 'join("e", join(a, a)).join([a]).partition(b)')
    (beside,) = swap_at(places, tree, 'join("é", b)')
    number = CODE.split("\n").index('    f"{join(a, b)}"') + 1
    (formatted,) = (each for each in places if each.line == number)

    assert [each and each.before for each in (outer, inner, beside)] == ['"e"', None, None]
    assert exchange((tree / formatted.path).read_bytes(), formatted) is None


def test_draw_depends_on_the_seed_alone(places: list[Place], tree: Path) -> None:
    """One seed draws the same places again, half of them by position; none whose exchange has no effect."""
    drawn = draw(places, 4, seed="a", root=tree)

    assert drawn == draw(places, 4, seed="a", root=tree)
    assert [each.is_keyword for each in drawn] == [False, False, True, True]
    assert all(exchange((tree / each.path).read_bytes(), each) for each in drawn)


def test_nearest_tests_run_first() -> None:
    """The tests that mirror a module come first, then those that import it; no test comes twice."""
    stages = list(TestSelection(ROOT).stages("src/limnos/services/vending/credentials.py"))
    names = [name for stage in stages for name in stage]

    assert stages[0] == ["tests/services/vending/test_credentials.py"]
    assert "tests/http/iceberg/test_vended_credentials.py" in names
    assert len(names) == len(set(names))


def test_test_that_fails_with_the_swap_alone_catches_it(tmp_path: Path) -> None:
    """A test that fails with the exchange alone catches it, also if its parameters come from the exchanged values. One
    that fails anyway does not, nor does one that cannot see it. A place that no test reaches is said to be so.
    """
    tree = TrialTree(tmp_path)
    code, tests = tree.root / "src" / "limnos" / "swapped.py", tree.root / "tests" / "model"
    code.write_text(
        "def join(left: str, right: str) -> str:\n    return left + right\n\ndef use() -> str:\n    return join('a', 'b')\n"
    )
    names = {"broken": "1 == 2", "blind": "len(use()) == 2", "seeing": "use() == 'ab'", "other": "True"}
    for name, condition in names.items():
        text = f"from limnos.swapped import use\n\ndef test_{name}():\n    assert {condition}\n"
        (tests / f"test_swapped_{name}.py").write_text(text)
    (tests / "test_swapped_by_value.py").write_text(
        "import pytest\nfrom limnos.swapped import use\n\n"
        "@pytest.mark.parametrize('value', [use()])\ndef test_value(value):\n    assert value == 'ab'\n"
    )
    place = Place(
        path="src/limnos/swapped.py",
        line=5,
        column=11,
        end=(5, 25),
        argument=0,
        is_keyword=False,
        type="str",
        callee="limnos.swapped.join",
    )

    def run(*chosen: str) -> tuple[str, str]:
        trial = tree.run(place, [[f"tests/model/test_swapped_{each}.py"] for each in chosen], limit_s=300)
        return trial.word, trial.test

    assert run("broken", "blind", "seeing") == ("caught", "tests/model/test_swapped_seeing.py::test_seeing")
    assert run("broken", "by_value") == ("caught", "tests/model/test_swapped_by_value.py::test_value[ba]")
    assert run("broken", "blind") == ("survived", "")
    assert run("other") == ("not reached", "")
