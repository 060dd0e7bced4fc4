# SPDX-License-Identifier: Apache-2.0
"""Records of more than four fields are built by keyword everywhere, and the rule sees each spelling of a call."""

from __future__ import annotations

from functools import cache

import pytest

from tests.house.constructors import FileSummary, Records, built_by_position, not_keyword_only, summarize
from tests.house.one_pass import EVERYTHING, Look
from tests.house.tidy import SourceFile

SUMMARIES = Look(summarize, *EVERYTHING)

FIELDS = "".join(f"    {name}: int\n" for name in "abcde")
DECLARED = SourceFile(
    "src/limnos/model/a.py",
    "import msgspec\nfrom dataclasses import dataclass, field\nfrom typing import ClassVar, NamedTuple\nclass"
    f" Row(NamedTuple):\n{FIELDS}class Small(NamedTuple):\n    a: int\nclass Base(msgspec.Struct):\n    a: int\n    b:"
    " int\nclass Body(Base, kw_only=True):\n    c: int\n    d: int\n    e: int\n@dataclass(frozen=True)\nclass"
    f" Value:\n{FIELDS}@dataclass\nclass Counted:\n    a: ClassVar[int] = 0\n    b: int = field(init=False)\n    c:"
    " int\n    d: int\n    e: int\n",
)
EXPORTED = SourceFile("src/limnos/model/__init__.py", "from limnos.model.a import Row\n")


def summaries(*sources: SourceFile) -> list[FileSummary]:
    """Return what the rules read of some files."""
    return [summarize(source) for source in sources]


@cache
def records() -> Records:
    """Return the records of the repository."""
    return Records(SUMMARIES.results.values())


def complaints_about(text: str, path: str = "src/limnos/http/b.py") -> list[str]:
    """Apply the rule for calls to a file that uses the records of `DECLARED`."""
    files = summaries(DECLARED, EXPORTED, SourceFile(path, text))
    return built_by_position(Records(files), files[-1])


def test_large_records_are_built_by_keyword() -> None:
    """No call and no pattern of the repository gives the fields of a large record by position."""
    complaints = [text for file in SUMMARIES.results.values() for text in built_by_position(records(), file)]

    assert len(records().large) > 100
    assert not complaints, "\n" + "\n".join(complaints)


def test_large_records_are_keyword_only() -> None:
    """Dataclasses and structs of more than four fields take them by keyword alone."""
    complaints = not_keyword_only(records(), SUMMARIES.results.values())

    assert not complaints, "\n" + "\n".join(complaints)


@pytest.mark.parametrize(
    "text",
    [
        "from limnos.model.a import Row\nRow(1, b=2, c=3, d=4, e=5)",
        "from limnos.model.a import Row as R\nR(*row)",
        "from limnos.model import Row\nRow(1, 2, 3, 4, 5)",
        "from limnos.model import a\na.Row(1, 2, 3, 4, 5)",
        "import limnos.model.a\nlimnos.model.a.Row(1, 2, 3, 4, 5)",
        "def f():\n    from limnos.model.a import Body\n    return Body(1, 2, c=3, d=4, e=5)",
        "from limnos.model.a import Value\nmatch x:\n    case Value(1):\n        pass",
        (
            "from limnos.model.a import Row\nclass More(Row):\n    @classmethod\n    def of(cls):\n        return"
            " cls(1, 2, 3, 4, 5)"
        ),
    ],
)
def test_positional_arguments_are_reported(text: str) -> None:
    """Arguments by position are reported for every spelling of the import, in patterns, and in a class method."""
    assert len(complaints_about(text)) == 1


@pytest.mark.parametrize(
    "text,path",
    [
        ("from limnos.model.a import Row\nRow(a=1, b=2, c=3, d=4, e=5)", "src/limnos/http/b.py"),
        ("from limnos.model.a import Small\nSmall(1)", "src/limnos/http/b.py"),
        ("from limnos.model.a import Counted\nCounted(1, 2, 3)", "src/limnos/http/b.py"),
        ("from limnos.model.a import Row\nRow(*row)", "src/limnos/store/b.py"),
    ],
)
def test_keywords_small_records_and_rows_are_allowed(text: str, path: str) -> None:
    """Keywords, records of few fields and, in the store, a whole row are not reported."""
    assert complaints_about(text, path) == []


def test_missing_kw_only_is_reported() -> None:
    """A large dataclass without `kw_only` is reported, unless the store builds it of whole rows."""
    store = SourceFile("src/limnos/store/b.py", "from limnos.model.a import Value\nValue(*row)")

    declared, both = summaries(DECLARED), summaries(DECLARED, store)

    complaints = not_keyword_only(Records(declared), declared)

    assert len(complaints) == 1
    assert " Value: 5 fields" in complaints[0]
    assert not_keyword_only(Records(both), both) == []
