# SPDX-License-Identifier: Apache-2.0
"""Flags as plain data: those without a value, and others' names for flags.

A test compares the flags without a value with those of the commands.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_SWITCHES: Final = """
    --actions --all --all-or-nothing --all-outcomes --allow-http --bare --below --check --contents --counts --deny
    --device --dry-run --external --facets --flat --follow --force --full --group --help --hold --insecure-listen
    --keep-tokens --lineage --list --local --long --no-columns --no-open --offline --on-metalake --open --own
    --parents --plain-copy --plan --purge --recursive --restored --s3 --secrets --server --spark --timing --version
    --wait --what-if --wide --with-columns --without-keys --yes -h -l -r
"""
SWITCHES: Final = frozenset(_SWITCHES.split())
"""Flags without a value."""

_VALUED: Final = """
    --access --action --admin --after --allow-endpoint --allow-root --allow-source --allowed-location --as --at
    --at-once --away --backfill --ca-file --cache --catalog --certificate --class --column --columns --command
    --comment --conf --config --connect --cut-over --data --database --dataverse --depth --env --except --exclude
    --executor-wait --expires-in --field --file --filter --for --format --from --from-group --give-up --history
    --host-name --id --idle --ids --impl --into --jar --job --junit --key --kind --layout --lease --limit --listen
    --location --mask --master --metalake --missing --name --note --on --only --outcome --output --owner --param
    --preset --profile --property --provider --reason --remove-property --replacement --repository --request --results
    --resume --rows --rule --save --script --select --separator --since --snapshot --sqlpp --state --statement-timeout
    --step --storage --tag --test --threads --through --timeout --to --to-group --token --token-file --type --untag
    --until --uri --user --wait --wait-s --warehouse --what --who --workers -c -f
"""
VALUED: Final = frozenset(_VALUED.split())
"""Flags with a value."""

_GUESSED: Final = """
--format, --fmt, -o = --output
--json = --output json
--csv = --output csv
--url, --endpoint, --api = --uri
--host, --address = --uri http://{}
-u, --username, --login = --user
--auth = --token-file
--lake = --metalake
--schema, --db, -d, -D = --dataverse
--assume-yes, --no-confirm, -y, --force = --yes
-f = --follow
--watch = --follow
--tail = --follow|--limit
-rf, -fr, -R, --cascade, --recurse = -r
-a, -la, -al, -lh, --all, -A, -v, --verbose = -l
--level, -L, --max-depth = --depth
--fields, --select = --columns
--description, --desc, --doc = --comment
--message, --msg, --why, --because, --justification, --comment, -m = --reason|--note
--reason = --note
--note = --reason
--prop, --properties, --option = --property
--where, --rows, --condition, --row-filter = --filter
-n = --rows|--limit
--limit, --lines = --rows
--count = --rows|--counts
--for-user = --for
--target = --env
--model, --models = --select
--full-refresh = --full
--expires, --ttl = --expires-in
--out = --save|--output
--type = --kind
--table = --what|--kind table
--dry = --dry-run
--newer-than = --since
--today = --since today
--yesterday = --since yesterday
--last = --since|--limit
--from = --since
--to = --from|--until
--name = --into
--as-metalake, --new-name, --new-metalake, --target-metalake = --into
--days = --expires-in {}d
--read-as, --run-as, --impersonate = --as
--simulate = --what-if
--cacert, --ca = --ca-file
--threads, --parallelism = --at-once
--member, --role, --to-role, --to-user = --to
--path, --object, --resource, --securable = --on|--what|--at
--principal, --assignee, --grantee = --to|--from|--for
--user-name, --by, --actor = --who|--for
--status = --state|--outcome
--port = --listen 127.0.0.1:{}|--uri http://127.0.0.1:{}
-pv = --parents
-p = --parents|--param|--listen 127.0.0.1:{}|--uri http://127.0.0.1:{}
--bind = --listen
--dir = --data
--step, --select-step = --only
--recursive = --below
--warehouse-url = --warehouse
--location = --warehouse|--allowed-location
--label = --tag
--version, --at, --as-of, --asof, --timestamp, --ref, --snapshot-id, --version-as-of = --snapshot
--max, --max-results, --max-items, --top, --first, --size, --page-size = --limit|--rows|--depth
--start, --start-time, --after-time = --since
--end, --end-time, --before = --until
--environment = --env
--var, --set, --parameter = --param
--set-property = --property
--tags = --tag
-e, -q, --execute, --query, --sql, --statement, --query-string = --command
--lifetime-seconds, --ttl-seconds = --expires-in {}s
--default-base-location, --storage-root, --base-location = --warehouse
--resource-type, --object-type, --entity-type = --kind
"""
GUESSED_FLAGS: Final = {
    typed: known
    for line in _GUESSED.strip().splitlines()
    for words, _, known in [line.partition(" = ")]
    for typed in words.split(", ")
}
"""Flags that users try, and ours; of several the first that the command has. `{}` is the typed value."""


PORT: Final = 8090
"""The port of a server by default."""
_DURATION: Final = re.compile(r"(\d+) ?(y|yr|year|mo|mon|month|week|day|hr|hour|min|minute|sec|second)s?")
_UNITS: Final = {"y": "365d", "mo": "30d", "w": "7d", "d": "1d", "h": "1h", "mi": "1m", "s": "1s"}


def filled_value(template: str, value: str) -> str:
    """Return a flag's template with the typed value; an address without a port has that of a server by default."""
    if "http://{}" in template and "://" in value:
        return template.replace("http://{}", value)
    is_address = "http://{}" in template and ":" not in value
    return template.replace("{}", f"{value}:{PORT}" if is_address else value)


def spelled_duration(text: str) -> str | None:
    """Return a duration such as `1y`, `6 months` or `2hours` in our units; None for another text."""
    match = _DURATION.fullmatch(text.lower())
    if match is None:
        return None
    unit = next(each for start, each in _UNITS.items() if match[2].startswith(start))
    return f"{int(match[1]) * int(unit[:-1])}{unit[-1]}"


def with_joined_durations(tokens: Sequence[str]) -> list[str]:
    """Return a command line in which a duration of two words, such as `30 days`, is one: `30d`."""
    result: list[str] = []
    for token in tokens:
        duration = spelled_duration(f"{result[-1]} {token}") if result and result[-1].isdigit() else None
        if duration is not None:
            result[-1] = duration
        else:
            result.append(token)
    return result


def takes_value(flag: str) -> bool:
    """Return whether the word after a flag is its value."""
    return "=" not in flag and flag not in SWITCHES
