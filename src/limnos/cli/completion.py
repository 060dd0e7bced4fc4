# SPDX-License-Identifier: Apache-2.0
"""Completion for shells: words of the grammar, and names of the server.

A shell waits for the answer: names are asked for once, within a second, and any failure means no names.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
from collections.abc import Iterable, Sequence
from typing import Final, Literal

from limnos.cli.flags import GUESSED_FLAGS, SWITCHES
from limnos.cli.operations import BY_VERB_AND_KIND, COMMANDS, GROUP_ALIASES, GROUPS, KIND_WORDS, VERBS, plural
from limnos.cli.token_words import take_words

ASK: Final = "__complete"
"""The hidden command that scripts call with the words before the cursor, the last of which is not complete."""
NAMES_MAX: Final = 200
TIMEOUT_S: Final = "1"

# Names are others' input: each script quotes them, since a shell would run a back-quoted part of a path.
_SCRIPTS: Final = {
    "bash": """_limnos() {
    local -a found
    local each
    mapfile -t found < <(limnos __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    COMPREPLY=()
    for each in "${found[@]}"; do COMPREPLY+=("$(printf %q "$each")"); done
    [[ "${COMPREPLY[0]}" == *. ]] && compopt -o nospace 2>/dev/null
}
complete -o default -F _limnos limnos
""",
    "zsh": """#compdef limnos
_limnos() {
    local -a found
    found=("${(@f)$(limnos __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    found=("${(@)found:#}")
    (( $#found )) && compadd -a found
}
compdef _limnos limnos
""",
    "fish": """complete -c limnos -f -a '(limnos __complete (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
""",
}


def completion(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Print the completion script of a shell.

    Parameters
    ----------
    shell
        `bash`: add `eval "$(limnos completion bash)"` to ~/.bashrc. `zsh`: the same with `zsh` in ~/.zshrc, after
        compinit. `fish`: `limnos completion fish > ~/.config/fish/completions/limnos.fish`.
    """
    print(_SCRIPTS[shell], end="")


def complete(words: Sequence[str]) -> int:
    """Print the words that may stand where the last of `words` begins, one on each line."""
    *earlier_words, prefix = words or [""]
    candidates = _candidates(earlier_words, prefix)
    for each in sorted({each for each in candidates if each.startswith(prefix)})[:NAMES_MAX]:
        print(each)
    return 0


def _candidates(before: Sequence[str], prefix: str) -> Iterable[str]:
    positional, flags = take_words(before)
    if before[-1:] == ["--profile"]:
        return _profiles()
    if prefix.startswith("--"):
        return [flag for flag in {*SWITCHES, *_valued_flags()} if flag.startswith("--")]
    if not positional:
        return COMMANDS
    first = positional[0]
    words: list[str] = []
    if len(positional) == 1:
        words += [command for command in GROUPS.get(first, ()) if f"{first} {command}" not in GROUP_ALIASES]
        if first in VERBS:
            kinds = [kind for verb, kind in BY_VERB_AND_KIND if verb == first]
            words += [plural(kind) for kind in kinds] if first == "list" else kinds
    if words and not prefix:
        return words
    return [*words, *_names(positional, flags, prefix=prefix)]


def _profiles() -> Iterable[str]:
    from limnos.cli import profiles
    from limnos.cli.errors import StoppedError

    with contextlib.suppress(StoppedError):
        return list(profiles.read(os.environ).profiles)
    return []


def _valued_flags() -> set[str]:
    return {flag.split()[0] for flag in GUESSED_FLAGS.values()} | {
        "--uri",
        "--user",
        "--as",
        "--metalake",
        "--profile",
        "--kind",
        "--limit",
    }


def _names(positional: Sequence[str], flags: Sequence[str], *, prefix: str) -> list[str]:
    """Ask the server for names: of users, roles and the like for their commands, else of objects at the path."""
    kinds = {KIND_WORDS[word] for word in positional[:2] if word in KIND_WORDS}
    flat = kinds & {"user", "group", "role", "tag", "policy", "metalake"}
    above, dot, _ = prefix.rpartition(".")
    command = [*BY_VERB_AND_KIND["list", flat.pop()].command.split()] if flat else ["list", *([above] if dot else [])]
    return _list_names([*command, *flags, "--output", "json", "--timeout", TIMEOUT_S])


def _list_names(tokens: Sequence[str]) -> list[str]:
    """Run a list in this process; its names, or nothing after any failure."""
    from limnos.cli.command_tree import build

    text = io.StringIO()
    try:
        with contextlib.redirect_stdout(text), contextlib.redirect_stderr(io.StringIO()):
            build(tokens[0])(list(tokens), exit_on_error=False, print_error=False, result_action="return_value")
        rows = json.loads(text.getvalue())
    except (Exception, SystemExit):  # noqa: BLE001 - a shell shows no errors while it completes
        return []
    return [row["name"] for row in rows[:NAMES_MAX] if isinstance(row, dict) and isinstance(row.get("name"), str)]
