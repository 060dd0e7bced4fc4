# SPDX-License-Identifier: Apache-2.0
"""The arguments and flags of each command, as plain data: a proposal is checked without the parser.

A test compares the table with the commands. Flags of every command, such as `--uri`, are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final, NamedTuple

from limnos.cli.operations import BY_VERB_AND_KIND, COMMANDS, KIND_WORDS, VERBS

_SERVER: Final = (
    "--data --listen --host-name --certificate --key --database --config --access --authentication --admin --workers "
    "--sqlpp --bare --insecure-listen --warehouse --allow-root --allow-endpoint --allow-source"
)
"""Flags of the commands of a server."""
COMMON: Final = frozenset(
    {
        "--uri",
        "--metalake",
        "--token",
        "--token-file",
        "--user",
        "--as",
        "--profile",
        "--ca-file",
        "--timeout",
        "--output",
        "--help",
        "--version",
        "-h",
    }
)
"""Flags of every command."""
LIST_FLAGS: Final = frozenset({"--columns", "--wide"})
"""Flags of every command that prints a list."""
PREVIEW_LISTS: Final = {"delete": "--dry-run", "grant": "--what-if", "revoke": "--what-if", "import": "--list"}
"""Commands that print a list only with a flag, and that flag."""
_LISTS: Final = """
list, tree, find, trash list, head, files, table check, reports, snapshots, names check, names plan, names show,
ask, profile list, user secret accounts, user secret list, user list, group list, role list, role describe,
access explain, access holders, access reach, access who, access what, access diff, access simulate,
request list, tag list, tag describe, policy list, policy describe, restriction show, token list, audit, pipeline list,
pipeline runs, pipeline show, pipeline findings, pipeline run, pipeline promote, pipeline resume, pipeline diff,
pipeline test, pipeline shipped, pipeline calendar, schedule list, job list, job templates, sql, maintenance
plan, maintenance status, lance list, lance import, server check, server janitor, server config, node list, node
settings, task list, storage check, storage keys, webhook list
"""
"""Commands that print a list."""
_TABLE: Final = """
list = [PATH] --kind --only --long -l --recursive -r
tree = [PATH] --depth
show = [PATH] --kind
find = [WORDS...] --limit --facets
create metalake = NAME --comment --property
create catalog = NAME --warehouse --storage --type --provider --comment --property
create namespace = PATH --parents --comment --property
create fileset = PATH --external --location --comment --property
create model = PATH --comment --property
create dashboard = PATH --url --tables --comment --property
set = PATH --comment --column --property --remove-property --field --allowed-location --owner --tag --untag --kind
rename = SOURCE TARGET --kind
delete = PATH --kind --recursive -r --dry-run --purge --force --yes
catalog disable = NAME
catalog enable = NAME
pipeline watch = FILE --env --offline --helper
undrop = PATH --id --to --contents
trash list = [PATH]
trash delete = CATALOG ID --yes
head = PATH --rows --limit --columns --snapshot --file --location
files = PATH [DIRECTORY] --location --after --limit
table check = PATH --all
table mend = PATH
lineage up = PATH --depth --column
lineage down = PATH --depth --column
reports = PATH --type --limit
snapshots = PATH --limit
changes = --catalog --after --follow
names check = [CATALOG] --separator
names plan = [CATALOG] --separator --replacement --flat
names show = [CATALOG]
names migrate = [CATALOG] --yes
names undo = [CATALOG] --yes
names confirm = [CATALOG] --yes
ask = QUERY
export = METALAKE --format --secrets
import = [FILE] --into --ids --resume --give-up --list --yes
bulk = FILE --job --after --all-or-nothing --all-outcomes
migrate from = KIND URI --to --warehouse --iceberg --source-token --only --plan --check --cut-over
migrate to = KIND URI --from --warehouse --target-token --only --plan --check --cut-over
login = [USER] --device --local --data --expires-in
logout =
whoami =
profile list =
profile use = NAME
user secret create = USER --expires-in --save
user secret accounts =
user secret list = USER
user secret end = USER SECRET_ID --yes
user add = NAME
user remove = NAME --yes
user list =
user describe = NAME
user disable = NAME
user enable = NAME
user password = NAME
group create = NAME
group delete = NAME --yes
group list =
group describe = NAME
group add = GROUP [USERS...]
group remove = GROUP [USERS...]
role create = NAME --property
role delete = NAME --yes
role list =
role describe = NAME
grant = [WHAT...] --preset --to --to-group --on --on-metalake --kind --deny --what-if
revoke = [WHAT...] --preset --from --from-group --on --on-metalake --kind --deny --what-if
access explain = [ACTION] [PATH] --for --kind --through --actions
access holders = [PATH] --action --kind
access reach = [PATH] --for --kind --counts
access who = [PATH] --action --kind
access what = USER --at --missing --counts --kind
access diff = USER OTHER --at --kind
access simulate = CHANGE [WHAT...] --preset --to --from --to-group --from-group --on --on-metalake --kind --deny
request access = PATH --preset --reason --kind
request list = --own
request withdraw = REQUEST
request grant = REQUEST
request decline = REQUEST --note
owner show = PATH --kind
owner set = PATH OWNER --group --kind
tag create = NAME --comment --property
tag delete = NAME --yes
tag list = [PATH] --column --kind
tag describe = NAME
tag add = NAME PATH --column --kind
tag remove = NAME PATH --column --kind
policy create = NAME --type --content --comment
policy delete = NAME --yes
policy list = [PATH] --column --kind
policy describe = NAME
policy enable = NAME
policy disable = NAME
policy add = NAME PATH --column --kind
policy remove = NAME PATH --column --kind
restriction set = NAME PATH --filter --mask --except --to --kind
restriction show = PATH --kind
restriction remove = NAME PATH --kind --yes
protect = PATH --below --kind
unprotect = PATH --kind
token create = --for --name --expires-in --save
token list = --for --all
token revoke = TOKEN_ID --yes
console = --open
audit = --who --for --what --path --id --since --until --action --outcome --request --server --limit
audit export = [LOCATION] --since --until
pipeline list =
pipeline runs = [PIPELINE] --state --limit
pipeline show = RUN
pipeline cancel = RUN
pipeline findings = PIPELINE --rule --step --state --limit
pipeline drop = PIPELINE --yes
pipeline create = FILE --catalog
pipeline check = FILE --env --offline --helper
pipeline plan = FILE --env --select --exclude --master --connect --helper
pipeline schema =
pipeline graph = FILE --out --env --run --with-columns --offline
pipeline docs = FILE --out --env --offline
pipeline run = FILE --env --param --only --from --select --exclude --full --backfill --dry-run --hold --due --wait \
    --away --lease --at-once --master --connect --conf --helper
pipeline promote = FILE --env --param --select --exclude --dry-run --hold --wait --away --lease --at-once --master \
    --connect --conf
pipeline resume = RUN_ID [FILE] --away --lease --at-once --master --connect --conf
pipeline publish = RUN_ID
pipeline discard = RUN_ID --yes
pipeline diff = RUN_ID --rows --master --connect
pipeline test = FILE --select --exclude --test --junit --master --helper
pipeline shipped = [NAME] --catalog
pipeline schedule = FILE --cron --time-zone
pipeline calendar = [PIPELINE] --count
schedule list =
schedule show = PIPELINE
schedule pause = PIPELINE
schedule resume = PIPELINE
schedule delete = PIPELINE --yes
job run = TEMPLATE --conf
job list = [TEMPLATE]
job show = JOB
job cancel = JOB
job register = NAME EXECUTABLE [WORDS...] --spark --class --env --config --script --jar --comment
job templates =
job delete = NAME --yes
sql = --command -c --file -f --dataverse --results --timing --statement-timeout --history
maintenance plan = CATALOG --kind
maintenance explain = PATH
maintenance run = PATH --kind --wait --wait-s
maintenance cancel = OPERATION
maintenance work = --master --threads --idle --conf --s3 --executor-wait --allow-http
maintenance status = CATALOG
lance list = ROOT [PATH] --all --layout --storage
lance describe = ROOT [PATH] --tag --layout --storage
lance import = ROOT --into --dry-run --layout --storage
lance serve = [ROOT] --impl --property --listen --config --layout --storage
spark jars = --repository --cache --config --s3 --lineage
demo = [DIRECTORY]
server start = SERVER
server check = SERVER
server migrate = --restored --keep-tokens --force SERVER
server backup = FILE SERVER
server restore = FILE --keep-tokens --plain-copy --without-keys SERVER
server janitor = --dry-run SERVER
server config = [SETTING] SERVER
node list =
node settings = --all
task list = --state
task show = TASK_ID
task retry = TASK_ID
storage check = [CATALOG]
storage keys =
storage rotate-key =
webhook create = URL --after --operations --save
webhook list =
webhook drop = WEBHOOK_ID --yes
webhook retry = WEBHOOK_ID --after
completion = SHELL
"""


class Signature(NamedTuple):
    """The words of a command, the names of its arguments, those among them that are required, and its own flags, which
    those of lists are for a command that always prints one.

    A name that ends in `...` takes all remaining arguments.
    """

    words: tuple[str, ...]
    arguments: tuple[str, ...]
    required: int
    flags: frozenset[str]

    @property
    def most(self) -> int | None:
        """The maximum number of arguments; None if there is none."""
        return None if self.arguments and self.arguments[-1].endswith("...") else len(self.arguments)


def signature_of(tokens: Sequence[str]) -> Signature | None:
    """Return the signature of the command at the beginning of a resolved command line; None for an unknown one."""
    for length in (3, 2, 1):
        words = " ".join(tokens[:length])
        for line in _TABLE.strip().splitlines():
            name, _, rest = line.partition(" =")
            if name == words and len(tokens) >= length:
                return _parse_signature(name, rest.replace("SERVER", _SERVER).split())
    return None


@cache
def _groups() -> frozenset[str]:
    """Return the first word of each command, with those of rooms that are not installed."""
    return frozenset(row.split()[0] for row in _TABLE.strip().splitlines())


@cache
def _commands_of_lists() -> frozenset[str]:
    return frozenset(" ".join(each.split()) for each in _LISTS.split(","))


def prints_list(tokens: Sequence[str], *, signature: Signature) -> bool:
    """Return whether a resolved command line prints a list, of which `--columns` chooses the columns."""
    name = " ".join(signature.words)
    return name in _commands_of_lists() or PREVIEW_LISTS.get(name) in tokens


def is_installed(command: Sequence[str]) -> bool:
    """Return whether a command line, as the tables of answers have it, belongs to the kernel or to a room that is
    installed and on. Answers propose no other one.
    """
    first, kind = (*command, "", "")[:2]
    if first in VERBS and kind.isalpha() and kind.islower():
        return (first, KIND_WORDS.get(kind)) in BY_VERB_AND_KIND
    return first in COMMANDS or first not in _groups()


def _parse_signature(name: str, words: Sequence[str]) -> Signature:
    arguments = [word for word in words if not word.startswith("-")]
    list_flags = LIST_FLAGS if name in _commands_of_lists() else frozenset[str]()
    return Signature(
        words=tuple(name.split()),
        arguments=tuple(word.strip("[]") for word in arguments),
        required=sum(not word.startswith("[") for word in arguments),
        flags=frozenset(word for word in words if word.startswith("-")) | list_flags,
    )
