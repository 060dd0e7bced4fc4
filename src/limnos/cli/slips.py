# SPDX-License-Identifier: Apache-2.0
"""Messages about arguments that a command does not take: what is wrong, and the command to type.

The parser's own texts are not shown, except the choices of a value.
"""

from __future__ import annotations

import difflib
import itertools
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, get_args, get_origin

from cyclopts.exceptions import (
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    RepeatArgumentError,
    UnknownOptionError,
    UnusedCliTokensError,
)

from limnos.cli.errors import UsageError
from limnos.cli.flags import GUESSED_FLAGS, filled_value, with_joined_durations
from limnos.cli.foreign_flags import (
    CHOICES,
    FILE,
    FIND_FILTERS,
    OTHER_COMMANDS,
    PLACES,
    SECOND_COMMANDS,
    SHORT_KINDS,
)
from limnos.cli.grammar.reading import answers
from limnos.cli.grammar.spelling import close_words, typed_as
from limnos.cli.guesses import FILLERS, command_for
from limnos.cli.hints.explained_words import ordered_words
from limnos.cli.hints.near_flags import filtered_list, near_flags, proposed_flags, with_named_argument
from limnos.cli.hints.selections import lost_quotes, negated_selection
from limnos.cli.hints.typed_command import TypedCommand
from limnos.cli.output import flag_values
from limnos.cli.sentences import proposal_for, quoted
from limnos.cli.signatures import COMMON
from limnos.cli.token_words import take_words, without_flag
from limnos.model.privileges import Privilege

if TYPE_CHECKING:
    from cyclopts import App, Token

_CONNECTION = COMMON - {"--columns", "--wide"}
"""Flags of every command, which a list of a command's own flags leaves out."""


def slip_of(error: CycloptsError, *, tokens: Sequence[str], tree: App) -> UsageError:
    """Return the usage error for arguments that the parser refused. `tokens` begin with the command's words."""
    command = _Command(tokens, tree)
    if isinstance(error, UnknownOptionError):
        return _unknown_flag(error, command)
    if isinstance(error, MissingArgumentError):
        return _missing(error, command)
    if isinstance(error, UnusedCliTokensError):
        extra = error.unused_tokens or [""]
        return lost_quotes(extra, command.typed_tokens, flags=command.flags) or _too_many(extra[0], command)
    if isinstance(error, RepeatArgumentError):
        return UsageError(f"{error.token.keyword} is given twice", hint=f"give it once: '{command.usage}'")
    if isinstance(error, CoercionError) and error.token is not None:
        return _wrong_value(error, error.token, command=command)
    return UsageError(str(error), hint=f"'{command.name} --help' explains its arguments")


class _Command:
    """The command that was called, with its arguments."""

    def __init__(self, tokens: Sequence[str], tree: App) -> None:
        words: list[str] = []
        for token in tokens:
            if token.startswith("-") or token not in tree:
                break
            words.append(token)
            tree = tree[token]
        self.tokens = list(tokens)
        self.words = words
        self.rest = self.tokens[len(words) :]
        self.arguments = [] if tree.default_command is None else list(tree.assemble_argument_collection())

    @property
    def name(self) -> str:
        """The command as it is typed."""
        return " ".join(["limnos", *typed_as(" ".join(self.words)).split()])

    @property
    def typed_name(self) -> list[str]:
        """The words of the command as they are typed."""
        return typed_as(" ".join(self.words)).split()

    @property
    def typed_tokens(self) -> list[str]:
        """The command line as it is typed."""
        return [*self.typed_name, *self.rest]

    @property
    def usage(self) -> str:
        """The command with its arguments, those that were typed as they are, and the flags that it needs."""
        words = [self.name]
        typed, _ = take_words(self.rest)
        names = [argument.name for argument in self.arguments]
        is_path = len(typed) == 1 and "." in typed[0] and names[:2] == ["NAME", "PATH"]
        for argument in self.arguments:
            if argument.name == "*":
                continue
            if argument.name.startswith("-"):
                words += [f"{argument.name} {_value_name(argument.name)}"] if argument.required else []
            elif typed and not argument.token_count()[1] and not (is_path and argument.name == "NAME"):
                words.append(shlex.quote(typed.pop(0)))
            else:
                words.append(argument.name if argument.required else f"[{argument.name}]")
        return " ".join(words)

    @property
    def flags(self) -> list[str]:
        """The long names of its flags."""
        names = [name for argument in self.arguments for name in argument.names if name.startswith("--")]
        return list(dict.fromkeys(names))

    def again(self, before: str, after: str) -> str:
        """Return the command line with a flag, or a value, replaced. `{}` in `after` stands for the typed value."""
        rest: list[str] = []
        remaining = iter(self.rest)
        for token in remaining:
            name, sign, value = token.partition("=")
            if name == before and "{}" in after:
                rest += filled_value(after, value if sign else next(remaining, "VALUE")).split()
            elif before in {name, token}:
                rest += [f"{after}={value}"] if sign and " " not in after else after.split()
            else:
                rest.append("..." if rest and rest[-1] == "--token" else token)
        return shlex.join([*self.name.split(), *rest])


def _too_many(extra: str, command: _Command) -> UsageError:
    """Return the error for an argument too many, with the command that has a place for it."""
    message = f"'{extra}' is one argument too many"
    words, flags = take_words(command.rest)
    for phrase in (command.tokens, words):
        if (guess := command_for(phrase, least=2)) is not None:
            return answers.guess_error(" ".join(phrase[:2]), guess, flags=())
    at = command.tokens.index(extra) if extra in command.tokens else 0
    before = command.tokens[at - 1] if at else ""
    if command.words[0] in {"protect", "unprotect", "undrop"} and words and words[0].lower() in _PRINCIPALS:
        text = f"'limnos {command.words[0]}' is for objects, not for a {words[0].lower()}"
        return UsageError(text, hint=f"'{shlex.join(['limnos', 'show', words[0].lower(), extra])}' shows it")
    if (rest := with_joined_durations(command.rest)) != command.rest:
        text = "a duration is one word, such as 30d"
        return UsageError(text, hint=answers.propose([*command.typed_name, *rest]))
    plain = [word for word in words if word.lower() not in FILLERS]
    if len(plain) < len(words) and command.words[0] in {"list", "show", "tree", "head", "files"}:
        joins = next(word for word in words if word.lower() in FILLERS)
        return UsageError(f"'{joins}' is one word too many", hint=answers.propose([*command.words, *plain, *flags]))
    if command.words == ["access", "explain"] and (ordered := ordered_words(words)) is not None:
        return UsageError(ordered.message, hint=answers.propose([*ordered.command, *flags]))
    if "=" in extra and "=" in before:
        tokens = [*command.tokens[:at], "--property", *command.tokens[at:]]
        return UsageError(f"each property has its own --property: '{extra}'", hint=answers.propose(tokens))
    if (template := PLACES.get(" ".join(command.words))) is not None:
        last = words[-1] if words else extra
        form = template[1] if "." in last and len(template) > 1 else template[0]
        texts = {"{0}": words[0] if words else "", "{1}": last, "{+}": " ".join(words)}
        texts |= {"{2}": words[1] if len(words) > 1 else "", "{catalog}": last.partition(".")[0]}
        typed_flags = {flag.partition("=")[0] for flag in flags}
        if typed_flags & {*form.split()}:
            return UsageError(message, hint=answers.propose([*command.typed_name, *flags]))
        hint = answers.propose([*(texts.get(word, word) for word in form.split()), *flags])
        if command.words[0] == "create" and len(command.words) == 2:
            message = f"{message}: each command creates one {command.words[1]}"
        if command.words == ["group", "create"]:
            hint += f", then {answers.propose(['group', 'add', *words])}"
        if command.words == ["role", "list"]:
            hint += f"; the roles of a user: {answers.propose(['show', 'user', last])}"
        if command.words == ["user", "list"]:
            hint += f"; the users of a group: {answers.propose(['show', 'group', last])}"
        return UsageError(message, hint=hint)
    if command.words[0] in {"show", "list", "delete", "set", "tree", "head", "protect"} and len(words) > 1:
        return _of_path(message, command, words=words, flags=flags)
    return UsageError(message, hint=f"'{command.usage}'")


def _of_path(message: str, command: _Command, *, words: Sequence[str], flags: Sequence[str]) -> UsageError:
    """Return the error for a path of several words: a name with a space, a kind of another tool, a list of paths."""
    first, *rest = words
    if first.lower() in SHORT_KINDS and len(words) == 2:
        tokens = [*command.words, SHORT_KINDS[first.lower()], *rest, *flags]
        return UsageError(f"'{first}' is no kind here", hint=answers.propose(tokens))
    if command.words == ["set"]:
        name, _, value = " ".join(rest).partition("=" if "=" in rest[0] else " ")
        if name in {"comment", "owner", "tag", "property"}:
            typed = [*command.words, first, f"--{name}", value or name.upper(), *flags]
            return UsageError(f"'{name}' is an option", hint=answers.propose(typed))
        return UsageError(message, hint=f"'{command.usage}' with --comment, --owner, --tag or --property")
    if command.words == ["show"] and all(word.isdigit() for word in rest):
        text = f"{message}: 'show' takes no version, and shows the newest one with the number of versions"
        return UsageError(text, hint=answers.propose([*command.words, first, *flags]))
    if len(words) == 2 and "." in rest[0] and "." not in first and "`" not in first + rest[0]:
        text = f"'limnos {' '.join(command.words)}' knows no '{first}'"  # a name of a catalog has no space
        return UsageError(text, hint=answers.propose([*command.words, *rest, *flags]))
    joined = " ".join(words)
    path = joined if "`" in joined else ".".join(f"`{part}`" if " " in part else part for part in joined.split("."))
    as_one = answers.propose([*command.words, path, *flags])
    if all("." in word for word in words) and "`" not in joined:
        each = answers.propose([*command.words, first, *flags])
        is_list = first.partition(".")[0] == rest[0].partition(".")[0]
        hint = each if is_list else f"{each}; a name with a space is typed {as_one}"
        return UsageError(f"{message}: one path at a time", hint=hint)
    if "." not in joined and "`" not in joined and command.words[0] in {"show", "list", "tree", "head"}:
        text = f"{message}: the parts of a path have dots between them"
        return UsageError(text, hint=answers.propose([*command.words, ".".join(words), *flags]))
    if "." not in joined:
        return UsageError(message, hint=f"'{command.usage}'")
    text = f"{message}: a name with a space stands in back-quotes, and its path in single quotes"
    return UsageError(text, hint=as_one)


_CONFIRMED: Final = frozenset({"--yes", "-y", "--assume-yes", "--no-confirm"})
"""Flags that answer a question before it is asked."""
_PRINCIPALS: Final = frozenset({"user", "group", "role", "token"})


def _typed_value(tokens: Sequence[str], flag: str) -> str:
    """Return the value of a flag in a command line, quoted for a shell; VALUE if it has none."""
    for at, token in enumerate(tokens):
        name, sign, value = token.partition("=")
        if name == flag:
            return shlex.quote(value if sign else next(iter(tokens[at + 1 :]), "VALUE"))
    return "VALUE"


def _value_name(flag: str) -> str:
    if flag in {"-f", "-c"}:
        return "FILE" if flag == "-f" else "STATEMENT"
    return flag.lstrip("-").replace("-", "_").upper()


def _unknown_flag(error: UnknownOptionError, command: _Command) -> UsageError:
    parsed = (error.token.keyword or error.token.value).partition("=")[0]
    typed = next((token for token in command.rest if token in GUESSED_FLAGS and parsed[1:] in token), parsed)
    message = f"'{command.name}' has no flag {typed}"
    known = [*command.flags, *(["-r"] if "--recursive" in command.flags else [])]
    known += ["-l"] if "--long" in command.flags else []
    if (error_of_command := _of_one_command(typed, command, message=message, has_yes="--yes" in known)) is not None:
        return error_of_command
    if (hint := _said_elsewhere(typed, command)) is not None:
        return UsageError(message, hint=hint)
    with_argument = answers.propose(command.typed_tokens)
    if with_argument != quoted(command.typed_tokens) and len(take_words(command.rest)[0]) < _count(
        with_argument, command
    ):
        return UsageError(message, hint=with_argument)
    if (instead := OTHER_COMMANDS.get((" ".join(command.words), typed))) is not None:
        words = [token for token in command.rest if not token.startswith("-")]
        value = _typed_value(command.rest, typed)
        return UsageError(f"{message}: {instead[0]}", hint=instead[1].format(*words, "NAME", "VALUE", value=value))
    for guess in _guesses(typed):
        if guess.split()[0] in {*known, "--columns", "--wide"}:
            return UsageError(message, hint=answers.propose(shlex.split(command.again(typed, guess))[1:]))
    if (near := _near_flag(typed, known)) is not None:
        return UsageError(message, hint=f"'{command.again(typed, near)}'")
    if (filtered := filtered_list(typed, command.words, command.rest)) is not None:
        return UsageError(f"{message}: {filtered.reason}", hint=filtered.hint)
    if (flag := _flag_with_choice(typed, command)) is not None:
        return UsageError(message, hint=answers.propose(shlex.split(command.again(typed, flag))[1:]))
    if (as_argument := with_named_argument(typed, command.words, command.rest)) is not None:
        return UsageError(f"{message}: the value stands alone", hint=answers.propose(as_argument))
    if typed == "--catalog" and (catalog := next(iter(flag_values(command.rest, typed)), "")):
        rest = [token for token in command.rest if token not in {typed, catalog, f"{typed}={catalog}"}]
        words, flags = take_words(rest)
        path = [f"{catalog}.{words[0]}" if words else catalog, *words[1:]] if len(words) < 2 else words
        return UsageError(
            f"{message}: a path begins with its catalog", hint=answers.propose([*command.words, *path, *flags])
        )
    return UsageError(message, hint=_nearest(typed, command, known=known))


def _flag_with_choice(typed: str, command: _Command) -> str | None:
    """Return the flag that takes the word of an unknown one as a value, as `--state failed` for `--failed`; None
    without one.
    """
    word = typed.lstrip("-").lower()
    after = next((following for token, following in itertools.pairwise(command.rest) if token == typed), "-")
    if not after.startswith("-"):
        return None
    for argument in command.arguments:
        choices = _choices(argument.hint)
        value = word if word in choices else CHOICES.get(word, "")
        if argument.name.startswith("--") and argument.name not in _CONNECTION and value in choices:
            return f"{argument.name} {value}"
    return None


def _choices(hint: object) -> list[str]:
    """Return the values of a flag that takes one of several words; empty for another type."""
    if get_origin(hint) is Literal:
        return [str(each) for each in get_args(hint)]
    return [choice for each in get_args(hint) for choice in _choices(each)]


def _nearest(typed: str, command: _Command, *, known: Sequence[str]) -> str:
    """Return the hint for a flag that no rule knows: at most two near flags, or the command line without the flag. A
    command that takes something away is not proposed without it.
    """
    own = [flag for flag in known if flag not in _CONNECTION and not flag.startswith("--no-")]
    if near := near_flags(typed, own):
        return proposed_flags(near, name=command.name)
    explains = f"'{command.name} --help' explains its {'flags' if own else 'arguments'}"
    if TypedCommand(command.tokens).takes_away or "delete" in command.tokens[:2]:
        return explains
    plain = answers.propose(command.typed_tokens).partition(" (it has no")[0]
    return explains if typed in plain.split() else f"{plain} without it; {explains}"


def _of_one_command(typed: str, command: _Command, *, message: str, has_yes: bool) -> UsageError | None:
    """Return the error for a flag that one command, or one group of commands, answers in its own way; None for other
    flags.
    """
    if command.words == ["find"] and typed in {"--table", "--dataset", "--index"}:
        text = " ".join(take_words(command.rest)[0][:1])
        return UsageError(
            f"{message}: it searches names and words of objects, and LanceDB's clients search rows",
            hint=answers.propose(["find", text or "WORDS"]),
        )
    if command.words == ["head"] and typed in {"--where", "--filter", "-w"}:
        return _filtered_head(message, typed, command=command)
    if command.words == ["find"] and typed.startswith("--"):
        return UsageError(f"{message}: filters are words", hint=f"'{command.again(typed, f'{typed[2:]}:{{}}')}'")
    if command.words == ["list"] and typed in FIND_FILTERS:
        value = _typed_value(command.rest, typed)
        return UsageError(f"{message}: find has filters", hint=f"'limnos find {FIND_FILTERS[typed]}:{value}'")
    if command.words == ["access", "explain"] and typed == "--action":
        value = next(iter(flag_values(command.rest, typed)), "ACTION")
        rest = [token for token in command.rest if token not in {typed, value, f"{typed}={value}"}]
        return UsageError(f"{message}: the action comes first", hint=answers.propose([*command.words, value, *rest]))
    if typed in _CONFIRMED and not has_yes:
        rest = [token for token in command.rest if token != typed]
        return UsageError(f"{message}: it does not ask", hint=answers.propose([*command.typed_name, *rest]))
    if command.words == ["login"] and typed in {"--username", "-u", "--name"}:
        return UsageError(message, hint=answers.propose(shlex.split(command.again(typed, "{}"))[1:]))
    if command.words == ["access", "explain"] and typed == "--missing":
        rest = [token for token in command.rest if token != typed]
        text = f"{message}: it names the missing rights without one"
        return UsageError(text, hint=answers.propose([*command.words, *rest]))
    if command.words[0] == "server" and typed in _CONNECTION:
        text = f"'{command.name}' is about this machine, and asks no server: it has no flag {typed}"
        return UsageError(text, hint=answers.propose([*command.words, *without_flag(command.rest, typed)]))
    if command.words == ["delete"] and typed == "-f":
        text = f"{message}, and reads no file: an object is named by its path"
        return UsageError(text, hint=answers.propose(["delete", *_deleted(command)]))
    return None


def _deleted(command: _Command) -> list[str]:
    """Return the arguments of `delete -f`: a path that was typed, never a name that kubectl would read as a file's."""
    words, flags = take_words([word for word in command.rest if word != "-f"])
    paths = [word for word in words if "." in word and not FILE.fullmatch(word)]
    return [*(paths or ["PATH"]), *[flag for flag in flags if flag not in _CONFIRMED]]


def _filtered_head(message: str, typed: str, *, command: _Command) -> UsageError:
    """Return the error for a condition on the rows of `head`, with the statement that has it."""
    path = next(iter(take_words(command.rest)[0]), "PATH")
    condition = next(iter(flag_values(command.rest, typed)), "CONDITION")
    statement = proposal_for([f"select * from {path} where {condition}"])  # noqa: S608 - proposed, not run
    if statement is None or not path.startswith("main."):
        return UsageError(f"{message}: engines filter rows", hint=answers.propose(["head", path]))
    return UsageError(f"{message}: statements filter rows", hint=answers.propose(statement.command))


def _count(proposal: str, command: _Command) -> int:
    """Return the number of arguments of a proposed command line."""
    text = proposal.partition(" (it has no")[0]
    try:
        words, _ = take_words(shlex.split(text[1:-1] if text.startswith("'") else text)[1:])
    except ValueError:  # a quote in the text after the command
        return 0
    return len(words) - len(command.typed_name)


def _guesses(typed: str) -> list[str]:
    """Return our flags for a flag of other tools."""
    known = GUESSED_FLAGS.get(typed, GUESSED_FLAGS.get(typed.replace("_", "-"), ""))
    return [each for each in known.split("|") if each]


def _near_flag(typed: str, known: Sequence[str]) -> str | None:
    """Return the flag that a misspelt one is: the command's own ones first, then others' words for them, last those of
    every command.
    """
    name = typed.replace("_", "-")
    own = [flag for flag in known if flag not in _CONNECTION and not flag.startswith("--no-")]
    if near := close_words(name, [*own, "--columns", "--wide"], cutoff=0.75):
        return near[0]
    for guessed in difflib.get_close_matches(name, list(GUESSED_FLAGS), n=3, cutoff=0.85):
        for guess in GUESSED_FLAGS[guessed].split("|"):
            if guess.split()[0] in own:
                return guess
    near = difflib.get_close_matches(name, [flag for flag in known if flag in _CONNECTION], n=1, cutoff=0.8)
    return near[0] if near and near[0] != "--as" else None


def _said_elsewhere(typed: str, command: _Command) -> str | None:
    """Return the commands that do what a flag of a `create` command would do elsewhere; None for other flags."""
    words, _ = take_words(command.rest)
    then = SECOND_COMMANDS.get((" ".join(command.words), typed))
    if then is None or not words:
        return None
    value = next(iter(flag_values(command.rest, typed)), "VALUE")
    names = [each for each in [*re.split(r"[\s,]+", value), *(re.split(r"[\s,]+", " ".join(words[1:])))] if each]
    if names and then.startswith("group add {value}"):
        each_group = [["group", "add", group, words[0]] for group in names]
    else:
        each_group = [_with_words(then, name=words[0], values=names)]
    after = ", ".join(quoted(each) for each in each_group)
    return f"{answers.propose([*command.typed_name, words[0]])}, then {after}"


def _with_words(template: str, *, name: str, values: Sequence[str]) -> list[str]:
    """Return the words of a command: `{name}` is the typed name, `{value}` all values."""
    words = [[name] if word == "{name}" else list(values) if word == "{value}" else [word] for word in template.split()]
    return [word for part in words for word in part]


def _missing(error: MissingArgumentError, command: _Command) -> UsageError:
    tokens = error.argument.tokens if error.argument is not None else ()
    name = error.keyword or next((token.keyword for token in tokens if token.keyword), None)
    if name is not None:
        return _without_value(name, command)
    if (named := _named_by_flag(command)) is not None:
        return named
    label = "an argument" if error.argument is None else error.argument.name
    _, flags = take_words(command.rest)
    typed = " ".join([command.usage, *map(shlex.quote, flags)]) if flags else command.usage
    hint = f"'{typed}'" if "'" not in typed else typed
    lists = _ID_LISTS.get(label)
    if lists is not None:
        words, _ = take_words(command.rest)
        hint += f"; {quoted([*lists.split(), *(words[:1] if lists == 'list secrets' else [])])} has the ids"
    if label == "PATH" and f"NAME {' '.join(map(shlex.quote, take_words(command.rest)[0]))}" in typed:
        label = "NAME"
    return UsageError(f"{label} is missing", hint=hint)


_ID_LISTS: Final = {
    "SECRET_ID": "list secrets",
    "TOKEN_ID": "list tokens",
    "RUN_ID": "list runs",
    "TASK_ID": "list tasks",
    "WEBHOOK_ID": "list webhooks",
    "JOB": "list jobs",
    "REQUEST": "list requests",
}
"""The list that has the ids of a missing argument."""


def _without_value(name: str, command: _Command) -> UsageError:
    """Return the error for a flag without its value, or with a negative one, which stands for a flag."""
    tokens = command.typed_tokens
    after = next((token for before, token in itertools.pairwise(tokens) if before == name), "")
    if after[1:2].isdigit():
        again = [after[1:] if token == after else token for token in tokens]
        return UsageError(f"{name} takes no negative value, as '{after}'", hint=answers.propose(again))
    if command.words[0] in {"grant", "revoke"}:
        return UsageError(f"{name} needs a value", hint=answers.propose(_whole_grant(name, command)))
    return negated_selection(name, after, tokens=tokens) or UsageError(
        f"{name} needs a value", hint=answers.propose([*tokens, _value_name(name)])
    )


def _whole_grant(name: str, command: _Command) -> list[str]:
    """Return a grant with a place to fill after a flag without a value: a holder of the kind that takes it. An object
    among privileges stands after --on.
    """
    words, flags = take_words([token for token in command.rest if token != name])
    is_role, has_preset = words[:1] == ["role"], "--preset" in flags
    objects = [] if is_role or has_preset else [word for word in words if word.upper() not in Privilege.__members__]
    value = {"--on": "PATH", "--preset": "reader"}.get(
        name, "USER" if is_role else "user:NAME" if has_preset else "ROLE"
    )
    on = (
        ["--on", objects[0]]
        if objects and len(objects) < len(words) and not {"--on", "--on-metalake"} & {name, *flags}
        else []
    )
    kept = [word for word in words if word not in on]
    return [*command.words, *kept, *on, *flags, name, value]


def _named_by_flag(command: _Command) -> UsageError | None:
    """Return the error for a name that stands after a flag, as in `user create --user bob`; None for another one."""
    flag = f"--{command.typed_name[-1]}"
    value = next(iter(flag_values(command.rest, flag)), "")
    if not value or take_words(command.rest)[0]:
        return None
    rest = " ".join([shlex.quote(token) for token in command.rest])
    rest = rest.replace(f"{flag}={shlex.quote(value)}", "").replace(f"{flag} {shlex.quote(value)}", "")
    again = answers.propose([*command.typed_name, value, *shlex.split(rest)])
    return UsageError(f"the name stands without a flag, not after {flag}", hint=again)


def _wrong_value(error: CoercionError, token: Token, *, command: _Command) -> UsageError:
    label = token.keyword or ("" if error.argument is None else error.argument.name)
    choices = [str(each) for each in get_args(error.target_type)] if get_origin(error.target_type) is Literal else []
    takes = f"one of {', '.join(choices)}" if choices else _VALUE_WORDS.get(error.target_type, "another value")
    meant = CHOICES.get(token.value.lower(), "")
    if label == "--preset" and token.value.lower() in {"owner", "ownership", "own"}:
        return _owner_instead(command)
    near = [meant] if meant in choices else close_words(token.value.lower(), choices, cutoff=0.7)
    if not choices and error.target_type is int and label != "--snapshot" and label.startswith("-"):
        near = ["10"]
    again = f"'{command.again(token.value, near[0])}'" if near else f"'{command.name} --help' explains its arguments"
    source = "" if token.source in {"", "cli"} else f" from {token.source}"
    return UsageError(f"{label} takes {takes}, not '{token.value}'{source}", hint=again)


def _owner_instead(command: _Command) -> UsageError:
    """Return the error for a preset `owner`: an object has one owner, which another command sets."""
    words, _ = take_words(command.rest)
    path = next(iter([*flag_values(command.rest, "--on"), *words]), "PATH")
    holder = next(iter(flag_values(command.rest, "--to")), "OWNER").removeprefix("user:")
    return UsageError(
        "an object has one owner, which is no preset", hint=answers.propose(["set", "owner", path, holder])
    )


_VALUE_WORDS: Final[dict[object, str]] = {int: "a whole number", float: "a number", Path: "a file"}
