# SPDX-License-Identifier: Apache-2.0
"""Every page of docs/ is on a shelf and listed in docs/README.md, and its relative links work."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from limnos.config.settings import sections
from tests.house import pages

DOCS = Path(__file__).parents[2] / "docs"
RULES = (pages.dead_links, pages.unreached, pages.unlisted, pages.misplaced, pages.long_pages, pages.wide_lines)


def folder(root: Path, **texts: str) -> Path:
    """Create a folder of pages: a keyword `guides__a` is the file guides/a.md."""
    for name, text in texts.items():
        file = root.joinpath(*name.split("__")).with_suffix(".md")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return root.resolve()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_documentation_follows_the_rule(rule: Callable[[Path], list[str]]) -> None:
    """No page of docs/ violates the rule."""
    complaints = rule(DOCS)

    assert not complaints, "\n" + "\n".join(complaints)


def test_dead_link_is_reported(tmp_path: Path) -> None:
    """A link to a missing file or heading is reported; links in code blocks and to other hosts are not."""
    docs = folder(
        tmp_path,
        README="[a](guides/a.md) [b](guides/b.md) [far](https://example.com/x.md)\n\n```text\n[c](c.md)\n```\n",
        guides__a="# A page\n\n[back](../README.md) [here](#a-page) [there](#b-page) [other](../README.md#c)\n",
    )

    assert pages.dead_links(docs) == ["README.md: b.md", "guides/a.md: a.md#b-page", "guides/a.md: README.md#c"]


def test_unreachable_page_is_reported(tmp_path: Path) -> None:
    """A page that no chain of links reaches is reported; one that another page links is reached, but not listed."""
    docs = folder(
        tmp_path,
        README="[a](guides/a.md) [decisions](decisions/README.md)\n",
        guides__a="[b](b.md)\n",
        guides__b="# B\n",
        guides__dead="[a](a.md)\n",
        decisions__README="[one](0001-one.md)\n",
        **{"decisions__0001-one": "# One\n"},
    )

    assert pages.unreached(docs) == ["guides/dead.md"]
    assert pages.unlisted(docs) == ["guides/b.md", "guides/dead.md"]


def test_page_outside_shelves_is_reported(tmp_path: Path) -> None:
    """A page outside of the shelves is reported, except README.md and STATE.md."""
    docs = folder(tmp_path, README="# Way in\n", STATE="# State\n", lance="# Lance\n", guides__lance="# Lance\n")

    assert pages.misplaced(docs) == ["lance.md"]


def test_decision_records_are_named_by_their_titles() -> None:
    """Each record begins with its number, title and status, and its file name has number and title."""
    complaints = pages.misnamed_records(DOCS / "decisions")

    assert not complaints, "\n" + "\n".join(complaints)


def test_misnamed_decision_record_is_reported(tmp_path: Path) -> None:
    """A record under another title, and one without a status, are reported."""
    docs = folder(
        tmp_path,
        **{
            "0001-names-of-users": "# 0001: Names of users\n\nStatus: accepted.\n\nText.\n",
            "0002-sqlpp-locks": "# 0002: SQL++ locks\n\nStatus: superseded by 0003.\n",
            "0003-locks": "# 0003: Locks of SQL++\n\nStatus: accepted; 0002 explains why.\n",
            "0004-views": "# 0004: Views\n\nText.\n",
        },
    )

    assert [complaint.partition(":")[0] for complaint in pages.misnamed_records(docs)] == [
        "0003-locks.md",
        "0004-views.md",
    ]


def test_too_long_page_is_reported(tmp_path: Path) -> None:
    """STATE.md with 200 lines is accepted, with 201 reported."""
    docs = folder(tmp_path, STATE="line\n" * 200)

    assert pages.long_pages(docs) == []
    folder(tmp_path, STATE="line\n" * 201)
    assert pages.long_pages(docs) == ["STATE.md: 201 lines"]


def test_too_wide_line_is_reported(tmp_path: Path) -> None:
    """Prose of 121 characters is reported, in lists and in a page beside the folder as well; tables and code are
    not.
    """
    wide = "x" * 121
    folder(tmp_path, README=wide)
    docs = folder(
        tmp_path / "docs",
        guides__a=f"{wide[1:]}\n| {wide} |\n\n    {wide}\n\n```text\n{wide}\n```\n\n{wide}\n",
        guides__b=f"- item\n    {wide}\n",
    )

    assert pages.wide_lines(docs) == [
        "a.md:10: 121 characters, 120 at most",
        "b.md:2: 125 characters, 120 at most",
        "README.md:1: 121 characters, 120 at most",
    ]


def test_guides_for_contributors_name_files_that_exist() -> None:
    """A file or folder in back-quotes exists below the repository, the package, its services or the tests."""
    root = DOCS.parent
    homes = (root, root / "src" / "limnos", root / "src" / "limnos" / "services", root / "tests")
    missing = [
        f"{page.name}: {path}"
        for page in (root / "CONTRIBUTING.md", root / "ARCHITECTURE.md", *sorted((DOCS / "contribute").glob("*.md")))
        for path in pages.paths_in(page)
        if not any((home / path).exists() for home in homes)
    ]

    assert missing == []


def test_only_paths_with_folder_are_checked(tmp_path: Path) -> None:
    """Paths with a folder are collected for the check; file names, commands, names of code and patterns are not."""
    page = tmp_path / "A.md"
    page.write_text(
        "`gone/file.py` `protocol.py` `store/schema/` `a.b()` `make docs` `http/<protocol>/x.py` `Kind.home`\n"
    )

    assert pages.paths_in(page) == ["gone/file.py", "store/schema/"]


def test_classes_of_the_glossary_exist() -> None:
    """Each class that the glossary names after a word exists in the package."""
    assert pages.missing_classes(DOCS / "reference" / "glossary.md", DOCS.parent / "src" / "limnos") == []


def test_missing_glossary_class_is_reported(tmp_path: Path) -> None:
    """A class that no module defines is reported; a setting or a table in code style is not."""
    docs = folder(
        tmp_path / "docs", glossary="| view (`Seen`) | X. | x |\n| gate (`Gate`) | Y (`view.bytes_max`). | y |\n"
    )
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "gate.py").write_text("class Gate:\n    pass\n", encoding="utf-8")

    assert pages.missing_classes(docs / "glossary.md", tmp_path / "src") == ["Seen"]


def test_page_of_limits_states_the_defaults_of_settings() -> None:
    """Each setting of the page has the default that the page states."""
    page = DOCS / "reference" / "limits.md"
    defaults = {
        f"{name}.{key}": field.get_default()
        for name, section in sections().items()
        for key, field in section.model_fields.items()
    }

    assert len(pages.SETTING.findall(page.read_text(encoding="utf-8"))) >= 10
    assert pages.wrong_defaults(page, defaults) == []


def test_wrong_default_is_reported(tmp_path: Path) -> None:
    """Another value than the default and an unknown setting are reported; units are converted."""
    page = tmp_path / "limits.md"
    page.write_text("| a | `a.bytes`, 2 MiB; `a.count`, 1,000 |\n| b | `a.time_s`, 3 s; `b.old`, 4; `a.count` |\n")

    assert pages.wrong_defaults(page, {"a.bytes": 2 << 20, "a.count": 1000, "a.time_s": 30}) == [
        "limits.md: a.time_s is 30, not 3 s",
        "limits.md: b.old is None, not 4",
    ]
