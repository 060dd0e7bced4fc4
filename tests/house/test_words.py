# SPDX-License-Identifier: Apache-2.0
"""Names are nouns of the field: no class is a participle, no class name has several meanings, and no private word
returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from tests.house import words
from tests.house.one_pass import EVERYTHING, PRODUCT, ROOT, Look, sentences
from tests.house.tidy import SourceFile

OWN_TEXTS = ("tests/house/words.py", "tests/house/test_words.py")
"""The modules that contain the words, as rules and as examples."""


def complaints(rule: Callable[[SourceFile], Iterable[str]], *folders: str) -> Look[list[str]]:
    """Create the look of a rule of words at all files but those that contain the words."""
    return Look(lambda file: list(rule(file)), *folders, without=OWN_TEXTS)


PARTICIPLES = complaints(words.participles, *EVERYTHING)
VARIABLES = complaints(words.variables, *EVERYTHING)
TEST_NAMES = complaints(words.test_names, *EVERYTHING[1:])
PRIVATE = complaints(lambda file: words.private(file.path, file.text), *EVERYTHING)
PROSE = complaints(words.private_prose_of_source, *EVERYTHING)
RIDDLES = complaints(words.riddles, *PRODUCT)
CLASS_NAMES = Look(words.class_names, *PRODUCT)
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
    assert sentences(PARTICIPLES) == []


@pytest.mark.parametrize("name", ["Asked", "_Loaded", "Told", "_Shown", "Reading"])
def test_class_named_by_a_participle_is_reported(name: str) -> None:
    """A class named by a participle only is reported, a private one too."""
    (complaint,) = words.participles(source(f"class {name}:\n    pass\n"))

    assert f"class {name} is a participle" in complaint


@pytest.mark.parametrize("name", ["ListRequest", "LoadedTable", "String", "Listing"])
def test_noun_class_names_are_accepted(name: str) -> None:
    """A noun, with or without a participle before it, is accepted."""
    assert list(words.participles(source(f"class {name}:\n    pass\n"))) == []


def test_class_names_are_used_in_at_most_three_modules() -> None:
    """No class name is used in more than three modules."""
    assert list(words.repeated(CLASS_NAMES.results)) == []


def test_fourth_class_with_the_same_name_is_reported() -> None:
    """The fourth module with the same class name is reported."""
    files = [source("class Entry:\n    pass\n", name) for name in "abcd"]
    names = {file.path: words.class_names(file) for file in files}

    assert len(list(words.repeated(names))) == 1
    del names[files[0].path]
    assert list(words.repeated(names)) == []


def test_variables_are_nouns() -> None:
    """No variable and no parameter is named by a participle alone, in tests and tools too."""
    assert sentences(VARIABLES) == []


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
    assert len(list(words.variables(source(text)))) == 1


def test_wire_fields_and_noun_variables_are_accepted() -> None:
    """Fields keep their names on the wire; a noun with a participle is accepted."""
    text = (
        "class A:\n    held: bool\n    told = 1\n\ndef f(self, requested_names) -> None:\n    self.kept = g(found=1)\n"
    )

    assert list(words.variables(source(text))) == []


def test_test_names_state_subject_and_verb() -> None:
    """Each test says in its name what it checks."""
    assert sentences(TEST_NAMES) == []


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
    of_pages = [each for page in PAGES for each in words.private(page.name, page.read_text(encoding="utf-8"))]

    assert sentences(PRIVATE) + of_pages == []


def test_private_word_in_name_or_comment_is_reported() -> None:
    """A name and a comment with a private word are reported."""
    assert len(list(words.private("a.py", "scene = 1  # the deeds\n"))) == 2


def test_prose_contains_no_private_words() -> None:
    """No docstring, comment or page uses a private word. Decision records are exempt."""
    of_pages = [
        each
        for page in PAGES
        if page.parent.name != "decisions"
        for each in words.private_prose(page.name, words.prose_of_page(page.read_text(encoding="utf-8")))
    ]

    assert sentences(PROSE) + of_pages == []


def test_private_word_in_prose_is_reported() -> None:
    """A docstring, a comment and a page with a private word are reported; a name, code and an exception are not."""
    file = source('"""What was told."""\ntold = 1  # the lane\nx = "door"\n')
    page = "`told` and limnos_cold_reads\n```\ndoor\n```\na cold read\n"

    assert len(list(words.private_prose_of_source(file))) == 2
    assert list(words.private_prose("b", words.prose_of_page(page))) == [
        "b:5: cold is a word of ours alone; say not cached"
    ]


def test_messages_contain_no_paraphrased_terms() -> None:
    """No message, log line or help text paraphrases a term."""
    assert sentences(RIDDLES) == []


def test_paraphrase_in_a_string_is_reported() -> None:
    """A listed phrase in a string is reported, also in a part of an f-string; docstrings have another rule."""
    file = source('"""Written anew."""\nx = f"{y} is written anew"\nz = "Whoever runs it"\n')

    assert len(list(words.riddles(file))) == 2
