# SPDX-License-Identifier: Apache-2.0
"""The user documentation is correct: its snippets run, and the commands, settings and links that it names exist.

`tests.cli.page_scripts` says which blocks are run, and how.
"""

from __future__ import annotations

import ast
import re
import shlex
import sqlite3
import tomllib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from cyclopts import App

from limnos.cli.command_tree import app
from limnos.cli.errors import UsageError
from limnos.cli.grammar import reading
from limnos.cli.operations import BY_VERB_AND_KIND, GROUP_ALIASES, OPERATIONS, VERB_ALIASES, VERBS
from limnos.config import load
from limnos.config.report import variable_name
from limnos.config.settings import keys, sections
from limnos.model.extras import MODULE_EXTRAS, install_hint
from limnos.store.backends.migrate import migrate
from tests.cli.page_scripts import START_FAILED, blocks_of, run_page
from tests.installed import is_absent_command

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted(file for file in (ROOT / "docs").rglob("*.md") if file.parent.name != "decisions")]
TUTORIALS = ("analyst", "auditor", "ml-engineer", "platform-admin")
RUN = [
    "README.md",
    "docs/reference/cli.md",
    "docs/guides/debugging.md",
    "docs/guides/deploy.md",
    "docs/guides/from-catalogs.md",
    *(f"docs/start/{name}.md" for name in TUTORIALS),
]
LANGUAGES = {"sh", "python", "toml", "sql", "text", "json", "mermaid", "ini", "nginx", "dockerfile"}
COMMAND = re.compile(r"(?:`|^ *|&& |\| |\$ |(?:venv/)?bin/)limnos ([^`\n#&|]+)", re.MULTILINE)
SECTIONS = "|".join(sections())
LINK = re.compile(r"\]\(([^)#:\s]*)(#[^)\s]*)?\)")


def commands_of(text: str) -> Iterator[list[str]]:
    """Return the command lines of `limnos` in a text, as words."""
    for command in COMMAND.findall(text):
        try:
            yield shlex.split(command.strip())
        except ValueError:  # the closing quote of a sentence
            yield command.split()


def resolve(words: list[str]) -> tuple[App | None, list[str]]:
    """Return the command that words name, and the remaining words; None if there is no such command."""
    tree: App = app
    try:
        words = reading.resolve(words)
    except UsageError:
        operation = BY_VERB_AND_KIND.get((words[0], words[-1])) if len(words) == 2 else None
        if operation is None:
            return None, words
        words = operation.command.split()  # a page names it without its arguments
    for at, word in enumerate(words):
        names = [name for name in tree if not name.startswith("-")]
        if not names:
            return tree, words[at:]
        if word.startswith("-"):
            return (tree, words[at:]) if tree.default_command or word in {"--help", "--version"} else (None, words[at:])
        if word not in names:
            return None, words[at:]
        tree = tree[word]
    return tree, []


def flags_of(command: App) -> set[str]:
    """Return every flag of a command."""
    arguments = command.assemble_argument_collection(parse_docstring=True) if command.default_command else ()
    return {"--help", "--version"} | {
        name for argument in arguments for name in argument.names if name.startswith("--")
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_of_a_page_exist(page: Path) -> None:
    """Every `limnos …` command that a page names exists, and accepts the named flags."""
    wrong = []
    for words in commands_of(page.read_text(encoding="utf-8")):
        if words[0][0] in "…<" or words[0].isupper() or is_absent_command(words):
            continue
        command, rest = resolve(words)
        flags = [word.partition("=")[0].rstrip(".,;") for word in rest if word.startswith("--")]
        if command is None or [flag for flag in flags if flag not in flags_of(command)]:
            wrong.append(" ".join(words))

    assert wrong == []


OTHER_SPELLING = re.compile(
    r"(?<![\w/.-])limnos ("
    + "|".join(
        sorted(
            {*VERB_ALIASES, *GROUP_ALIASES}
            | {each.command for each in OPERATIONS if each.command.split()[0] not in VERBS and " " in each.command},
            key=len,
            reverse=True,
        )
    )
    + r")\b(?![.-])"
)
"""A command in a spelling that the grammar takes, and that is not the main one."""
WRITTEN = [
    *(ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "examples").rglob("*.md"))),
    *(page for page in PAGES if page.parent.parent.name == "docs"),
    *sorted((ROOT / "src" / "limnos").rglob("*.html")),
    *sorted((ROOT / "src" / "limnos").rglob("*.py")),
]


def test_other_spellings_of_commands_are_not_written() -> None:
    """Pages, the console, docstrings and messages write each command as `limnos --help` does."""
    written = [
        f"{file.relative_to(ROOT)}: {match[0]}"
        for file in WRITTEN
        for match in OTHER_SPELLING.finditer(file.read_text(encoding="utf-8"))
    ]

    assert OTHER_SPELLING.search("type `limnos user add ben`")
    assert written == []


SPARKS_OWN = ("spark.archives", "spark.authenticate")
"""Settings of Spark that pages name, and that look like settings of the server."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_settings_of_a_page_exist(page: Path) -> None:
    """Every setting, environment variable of a setting, and make target that a page names exists."""
    text = page.read_text(encoding="utf-8")
    known = {*keys(), *SPARKS_OWN}
    variables = {variable_name(key) for key in keys()}
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))

    named = (
        set(re.findall(rf"`((?:{SECTIONS})\.[a-z_]+)`", text))
        if page.name not in {"consistency.md", "benchmarks.md"}
        else set()
    )
    assert {name for name in named if name not in known} == set()
    assert set(re.findall(r"LIMNOS__\w+", text)) - variables - {"LIMNOS__SECTION__KEY"} == set()
    assert set(re.findall(r"(?:`|^ *)make ([a-z-]+)", text, re.MULTILINE)) - targets == set()


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name
)
def test_links_of_a_page_have_existing_targets(page: Path) -> None:
    """Every link within the repository leads to an existing file and, if it has an anchor, to a heading."""
    lost = []
    for target, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        file = (page.parent / target).resolve() if target else page
        if not file.exists() or (anchor and anchor[1:] not in anchors_of(file)):
            lost.append(target + anchor)

    assert lost == []


def anchors_of(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub spells them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_checks_detect_planted_mistakes() -> None:
    """The checks above find a command, a flag and a heading that do not exist."""
    assert resolve(["lss"])[0] is None
    assert resolve(["trash", "lss"])[0] is None
    assert resolve(["access", "explain"])[0] is not None
    assert resolve(["create", "user", "ben"]) == (app["user"]["add"], ["ben"])
    assert "--nope" not in flags_of(app["list"])
    assert list(commands_of("x `limnos list --nope main` and\n    limnos user ad # x\n")) == [
        ["list", "--nope", "main"],
        ["user", "ad"],
    ]
    assert "no-such-heading" not in anchors_of(ROOT / "README.md")


@pytest.mark.parametrize("name", [*RUN, "docs/reference/settings.md"])
def test_code_blocks_name_their_language(name: str) -> None:
    """Each fenced block names its language, so that none is skipped; TOML blocks can be loaded."""
    for block in blocks_of(ROOT / name):
        assert block.language in LANGUAGES, block
        if block.language == "toml":
            tomllib.loads(block.text)


@pytest.mark.parametrize("name", [*RUN, "docs/reference/settings.md"])
def test_settings_in_blocks_can_be_used(name: str, tmp_path: Path) -> None:
    """A settings file on a page is accepted by a server."""
    for block in blocks_of(ROOT / name):
        if block.language == "toml":
            (tmp_path / "limnos.toml").write_text(block.text, encoding="utf-8")
            load(flags={}, file=tmp_path / "limnos.toml", environ={})


def test_statements_in_blocks_can_be_run(tmp_path: Path) -> None:
    """SQL statements on a page are valid in the store."""
    migrate(str(tmp_path / "limnos.db"))
    statements = [
        line
        for page in RUN
        for block in blocks_of(ROOT / page)
        if block.language == "sql"
        for line in block.text.splitlines()
    ]

    with closing(sqlite3.connect(tmp_path / "limnos.db")) as store:
        for statement in statements:
            store.execute(statement)

    assert len(statements) >= 3


def test_extras_exist() -> None:
    """Every extra that a page or a hint names belongs to the package."""
    known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    texts += [install_hint(extra) for extra in MODULE_EXTRAS.values()]
    lines = [line for text in texts for line in text.splitlines() if "pip install" in line]

    extras = [extra for line in lines for group in re.findall(r"\[([a-z0-9,]+)\]'", line) for extra in group.split(",")]
    assert extras
    assert set(extras) <= set(known)


@pytest.mark.parametrize("file", sorted((ROOT / "src" / "limnos").rglob("*.py")), ids=lambda file: file.name)
def test_commands_in_messages_exist(file: Path) -> None:
    """Messages and hints in the code name only existing commands."""
    texts = [
        node.value
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    named = [
        (command.split(), [*command.split(), "NAME"])  # the text of a template ends where a value follows
        for text in texts
        for command in re.findall(r"'limnos ([a-z][^'{]*)", text)
        if not is_absent_command(command.split())
    ]

    assert [words for words, longer in named if resolve(words)[0] is None and resolve(longer)[0] is None] == []


@pytest.mark.integration
@pytest.mark.parametrize("name", RUN)
def test_snippets_run(name: str, tmp_path: Path) -> None:
    """All commands of a page succeed in order, in an empty directory; Python prints what the page shows, and searches
    find something.
    """
    done = run_page(ROOT / name, tmp_path)

    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    assert "no matching object" not in done.stderr


@pytest.mark.integration
@pytest.mark.parametrize(
    "block", ["```sh\nlimnos whoami --token lim_1_wrong\n```\n", "```python\nprint(1)\n```\n\n```text\n2\n```\n"]
)
def test_wrong_snippet_is_detected(block: str, tmp_path: Path) -> None:
    """A page with a command that fails, and one whose Python prints something else than the page shows, fail."""
    page = tmp_path / "page.md"
    page.write_text(f"```sh\nlimnos server start\n```\n\n{block}", encoding="utf-8")

    done = run_page(page, tmp_path)

    assert done.returncode not in {0, START_FAILED}, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
