# SPDX-License-Identifier: Apache-2.0
"""Names are nouns of the field: no class is a participle, no class name has several meanings, and no private word
returns.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.house import words
from tests.house.tidy import SourceFile

ROOT = Path(__file__).parents[2]
FILES = [
    SourceFile(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
    for path in sorted((ROOT / "src").rglob("*.py"))
]
OWN_TEXTS = ("tests/house/words.py", "tests/house/test_words.py")
"""The modules that contain the words, as rules and as examples."""
OTHER_FILES = [
    SourceFile(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
    for top in ("tests", "conformance", "bench", "examples", "scripts")
    for path in sorted((ROOT / top).rglob("*.py"))
    if path.relative_to(ROOT).as_posix() not in OWN_TEXTS
]
"""The modules outside the product: tests, examples and tools."""
SHELVES = ("start", "guides", "reference", "explain", "contribute", "decisions")
GLOSSARY = "glossary.md"
"""The page with the meaning of the words of older releases."""
PAGES = [ROOT / name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "README.md")]
PAGES += [page for shelf in SHELVES for page in sorted((ROOT / "docs" / shelf).rglob("*.md")) if page.name != GLOSSARY]


def source(text: str, name: str = "a") -> SourceFile:
    """A module of the product."""
    return SourceFile(f"src/limnos/{name}.py", text)


def test_classes_are_nouns() -> None:
    """No class is named by a participle alone, in tests and tools too."""
    assert list(words.participles([*FILES, *OTHER_FILES])) == []


@pytest.mark.parametrize("name", ["Asked", "_Loaded", "Told", "_Shown", "Reading"])
def test_class_named_by_a_participle_is_reported(name: str) -> None:
    """A class named by a participle only is reported, a private one too."""
    (complaint,) = words.participles([source(f"class {name}:\n    pass\n")])

    assert f"class {name} is a participle" in complaint


@pytest.mark.parametrize("name", ["ListRequest", "LoadedTable", "String", "Listing"])
def test_noun_class_names_are_accepted(name: str) -> None:
    """A noun, with or without a participle before it, is accepted."""
    assert list(words.participles([source(f"class {name}:\n    pass\n")])) == []


def test_class_names_are_used_in_at_most_three_modules() -> None:
    """No class name is used in more than three modules."""
    assert list(words.repeated(FILES)) == []


def test_fourth_class_with_the_same_name_is_reported() -> None:
    """The fourth module with the same class name is reported."""
    files = [source("class Entry:\n    pass\n", name) for name in "abcd"]

    assert list(words.repeated(files[:3])) == []
    assert len(list(words.repeated(files))) == 1


def test_variables_are_nouns() -> None:
    """No variable and no parameter is named by a participle alone, in tests and tools too."""
    assert list(words.variables([*FILES, *OTHER_FILES])) == []


@pytest.mark.parametrize(
    "text",
    [
        "told = 1\n",
        "def f(asked: int) -> None: ...\n",
        "def f(*, kept: int) -> None: ...\n",
        "class A:\n    def f(self) -> None:\n        found = 1\n",
        "f(lambda held: held)\n",
        "[wanted for wanted in ()]\n",
        "import a as shown\n",
        "try: ...\nexcept OSError as lasting: ...\n",
        "match 1:\n    case whom: ...\n",
        "for _, (leave, one) in (): ...\n",
        "if apart := 1: ...\n",
        "with f() as _made: ...\n",
    ],
)
def test_variable_named_by_a_participle_is_reported(text: str) -> None:
    """A variable and a parameter of any kind that are named by a participle are reported."""
    assert len(list(words.variables([source(text)]))) == 1


def test_wire_fields_and_noun_variables_are_accepted() -> None:
    """Fields keep their names on the wire; a noun with a participle is accepted."""
    text = (
        "class A:\n    held: bool\n    told = 1\n\ndef f(self, requested_names) -> None:\n    self.kept = g(found=1)\n"
    )

    assert list(words.variables([source(text)])) == []


def test_test_names_state_subject_and_verb() -> None:
    """Each test says in its name what it checks."""
    assert [each for file in OTHER_FILES for each in words.test_names(file)] == []


@pytest.mark.parametrize("name", ["test_it_ends", "test_what_is_refused", "test_who", "test_a_limit_is_told"])
def test_name_without_subject_is_reported(name: str) -> None:
    """A test is reported whose name begins with a pronoun or a clause, or has a word that hides the result."""
    assert len(list(words.test_names(source(f"def {name}() -> None: ...\n")))) == 1


@pytest.mark.parametrize("name", ["test_expired_lease_is_refused", "test_oneself_is_a_word", "waits_until_it_ends"])
def test_name_with_subject_is_accepted(name: str) -> None:
    """A name with a subject is accepted; functions that are not tests are exempt."""
    assert list(words.test_names(source(f"def {name}() -> None: ...\n"))) == []


def test_sources_and_pages_contain_no_private_words() -> None:
    """Sources and pages use the terms of the field."""
    complaints = [each for file in (*FILES, *OTHER_FILES) for each in words.private(file.path, file.text)]
    complaints += [each for page in PAGES for each in words.private(page.name, page.read_text(encoding="utf-8"))]

    assert complaints == []


def test_private_word_in_name_or_comment_is_reported() -> None:
    """A name and a comment with a private word are reported."""
    assert len(list(words.private("a.py", "scene = 1  # the deeds\n"))) == 2


def test_prose_contains_no_private_words() -> None:
    """No docstring, comment or page uses a private word. Decision records are exempt."""
    complaints = [
        each for file in (*FILES, *OTHER_FILES) for each in words.private_prose(file.path, words.prose_of_source(file))
    ]
    for page in PAGES:
        if page.parent.name != "decisions":
            complaints += words.private_prose(page.name, words.prose_of_page(page.read_text(encoding="utf-8")))

    assert complaints == []


def test_private_word_in_prose_is_reported() -> None:
    """A docstring, a comment and a page with a private word are reported; a name, code and an exception are not."""
    file = source('"""What was told."""\ntold = 1  # the lane\nx = "door"\n')
    page = "`told` and limnos_cold_reads\n```\ndoor\n```\na cold read\n"

    assert len(list(words.private_prose("a", words.prose_of_source(file)))) == 2
    assert list(words.private_prose("b", words.prose_of_page(page))) == [
        "b:5: cold is a word of ours alone; say not cached"
    ]


def test_messages_contain_no_paraphrased_terms() -> None:
    """No message, log line or help text paraphrases a term."""
    assert [each for file in FILES for each in words.riddles(file)] == []


def test_paraphrase_in_a_string_is_reported() -> None:
    """A listed phrase in a string is reported, also in a part of an f-string; docstrings have another rule."""
    file = source('"""Written anew."""\nx = f"{y} is written anew"\nz = "Whoever runs it"\n')

    assert len(list(words.riddles(file))) == 2
