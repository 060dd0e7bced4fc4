# SPDX-License-Identifier: Apache-2.0
"""Words that people type, and the command to type instead.

Each line of `_TABLE` has words of other tools, the command, and for things that this command line does not do a
sentence that says where they are done. Arguments follow the command, or stand where it has `{}`; `{1}` and `{2}` are
single ones, `{+}` all after the first, `{q}` is a statement to write, `{r}` the statement after the phrase, and `{-}`
leaves them out. In a sentence, `{command}` is the name of the command.
"""

from __future__ import annotations

import functools
import itertools
import re
import shlex
from collections.abc import Sequence
from typing import Final

from limnos.cli.signatures import is_installed

_TABLE: Final = """
rm, remove, del, erase, destroy, unlink, rmdir, trash it, dispose = delete
drop table, drop view = delete {}
add column, drop column, rename column, alter column, add field, add columns = set {1} --column NAME=DESCRIPTION | columns are added and changed by engines; {command} describes a column
drop database, drop schema, drop namespace, rm -rf = delete -r {}
truncate, empty = sql -c 'delete from {1};' | rows are deleted by engines and SQL++, the table by 'limnos delete'
mkdir, md = create namespace
make, new, add, touch, insert object = create
add user, adduser, useradd, create-user, new user, signup, register user = create user
add group, groupadd, addgroup = create group
add role, roleadd = create role
add tag, tagging = set tag
new tag = create tag
tag it, label, annotate, classify = set {} --tag TAG
untag, unlabel = set {} --untag TAG
remove user, userdel, deluser, rm user = delete user
add catalog, attach, mount, connect catalog = create catalog
create schema, create database, create db, createdb = create namespace
create table, create view, create topic, create index, create function, new table, make table = console {-} | tables and views are created by engines, as Spark, PyIceberg, Trino, DuckDB; the documentation's page Clients and engines, which the console has, has their settings
create dataset, new dataset, create dataverse, create synonym = sql {-} | datasets of SQL++ are made by its CREATE DATASET, in {command}
new pipeline, init pipeline, add pipeline = create pipeline {1:FILE.yaml} | a pipeline is a file; {command} writes a small one to begin with
create run, new run, trigger, launch = pipeline run
create job = create template
create api-token, create apikey, create key, new token, generate token, apikey, api-key, pat = create token
ttl, expire policy, lifecycle = show maintenance TABLE {-} | retention is a policy of a table or of what is above it: 'limnos list policies'; {command} shows which applies
dir, ll, la, l, browse, index, catalogs, enumerate, print, gci, get-childitem = list
show all, get all = list
ls -la, ls -al = list -l
show tables, tables, get tables, list-tables, dt = list tables
show databases, show schemas, show namespaces, databases, schemas, namespaces, dbs = list namespaces
show catalogs, show warehouses, get catalogs, list-catalogs, warehouses = list catalogs
show metalakes, metalakes, show lakes, lakes, realms, projects = list metalakes
show views, views, get views = list views
show users, users, get users, who = list users
show roles, roles, get roles = list roles
show groups, groups = list groups
show tags, tags = list tags
show tokens, tokens = list tokens
show runs, runs, get runs, history of runs, executions, pipeline history, pipeline ps, pipeline log = list runs
show pipeline, describe pipeline, get pipeline, pipeline show = list runs {} | {command} lists the runs of a pipeline, and 'limnos show schedule' shows its schedule
show pipelines, pipelines, dags, dag, flows, flow = list pipelines
show jobs, jobs, get jobs = list jobs
show nodes, nodes, cluster, get nodes, members = list nodes
show tasks, tasks, queue, queues = list tasks
show webhooks, webhooks, hooks, subscribe = list webhooks
show files, filesets, show filesets, volumes = list filesets
show models, models = list models
show topics, topics = list topics
show restrictions, restrictions, masks, filters, row-filter = list restrictions
show settings, settings, show config, show variables = list settings
show profiles, profiles, contexts, get contexts, context = list profiles
show owner, owners, who owns = show owner
use, use catalog, use database, switch, cd = list {} | there is no current catalog: give whole paths, as main.raw.nyc
pwd, wd, cwd = whoami | there is no current directory: paths begin with a catalog; {command} shows your user
desc, info, stat, details, detail, inspect, get, view, open, cat-object, metadata, properties, show table, dd = show
describe table, desc table, describe extended, describe formatted, show create, show create table, ddl, schema, columns, show columns, fields = show {}
cat, preview, peek, sample, rows, data, top, select top, limit, show rows, less, more = head {1}
tail = head {1} | tables have no last rows: {command} shows the first
count, wc, nrows = list -l {1} | list -l shows the rows of each table
du, size, disk, storage size, df, usage, stats, statistics = list -l {1} | list -l shows rows and size of each table
select, with, values = sql -c {q} | statements are run by 'limnos sql', in SQL++
insert, insert into, upsert, merge, delete from = sql -c {q} | rows are written by engines and SQL++
query, run sql, exec, execute, spark-sql, beeline = sql -c {r} | statements are run by 'limnos sql', in SQL++
psql, snowsql, beeline, bteq, sqlite, sqlite3, duckdb, trino, mysql, repl, shell, prompt, notebook = sql {-} | 'limnos sql' is a shell for SQL++; other engines connect by the settings in the documentation's page Clients and engines, which the console has
explain, why, permission check = access explain table_read {1}
can-i, auth can-i, check access, am-i-allowed, can i = access explain {}
permissions, permission, privileges, acl, acls, getfacl, who can, who has access, show grants, grants, list grants, show access = access holders
what can, my access, access of, show privileges = access reach
chown, take ownership, transfer, set-owner = set owner {2} {1:OWNER}
alter owner = set owner
who can read, who can write, list who = access who {1:PATH}
chmod, setfacl, allow, give, permit, share = grant PRIVILEGE --on {} --to ROLE
deny, forbid, block = grant PRIVILEGE --on {} --to ROLE --deny
unrestrict, unmask = delete restriction NAME {}
perms, rights, can = access what {1:USER}
diff, compare, difference = access diff {1:USER} {2:OTHER}
what-if, whatif, simulate, dry-run = access simulate {}
ask access, ask-access, askaccess, ask for access, request-access, access request, get access = request access {1:PATH}
refuse, decline, reject, refuse request, deny request, reject request = request decline {1:ID}
accept, approve, accept request, approve request = request grant {1:ID}
requests, show requests = list requests
my requests, own requests, my access requests = list requests --own
withdraw request, retract request = request withdraw {1:ID}
blame = audit --path {} | {command} shows who changed it, as far as you may read the audit; 'limnos changes --catalog CATALOG' has the changes
su = whoami --as {1:USER} | --as USER runs any command as that user
sudo, run-as, runas = list --as USER {-} | --as USER runs any command as that user
impersonate, become = list --as {1:USER} | --as USER runs any command as that user
rotate token, renew token, refresh token = create token {-} | a token is not renewed: create another one, and revoke the former
open docs, docs, manual, documentation = console {-} | the server has the documentation at /docs, and the console a link to it
unshare, ungrant, withdraw, take = revoke PRIVILEGE --on {} --from ROLE
assign, assign role, add-role, grant-role, role grant, role assign, role add, user grant = grant role {1:ROLE} --to {2:USER}
role revoke, role remove, role unassign, user revoke = revoke role {1:ROLE} --from {2:USER}
privileges catalog grant, privileges namespace grant, privileges table grant, privileges view grant = grant --preset reader PATH --to role:ROLE {-} | what a role of another catalog may do is a preset here: reader, writer or admin
privileges catalog revoke, privileges namespace revoke, privileges table revoke, privileges view revoke = revoke --preset reader PATH --from role:ROLE {-} | what a role of another catalog may do is a preset here: reader, writer or admin
mask, hide, anonymize, redact = create restriction NAME {} --mask COLUMN=ACTION
filter, rls, row-level security, row policy = create restriction NAME {} --filter "region = 'EU'"
ren, move, rename-table, relocate = rename
rename table, rename view, alter table rename = rename {}
rename user, rename username, change username = create user {2:NAME} | a user keeps its name, which tokens and the audit have: create the new user, grant it the same roles, delete the former one
rename group = create group {2:NAME} | a group keeps its name, which grants and the audit have: create the new group with the same users and roles, delete the former one
rename role = create role {2:NAME} | a role keeps its name, which grants and the audit have: create the new role with the same grants, delete the former one
list columns, list fields, list schema = show {}
cp, copy, clone, duplicate, ctas = export lake {-} | tables are copied by engines; a whole metalake by export and import
alter, edit, modify, change, change object, put, patch, config set, update, update table, alter catalog = set
comment, set comment, comment on, describe as, doc, document = set {1} --comment {+:TEXT}
set property, property, tblproperties, set properties, set tblproperties = set {1} --property {2:KEY=VALUE}
unset, unset property, remove property = set {} --remove-property KEY
set location, location, allowed-locations = set {} --allowed-location URL
passwd, password, set-password, change password, reset password = set password
lock, freeze, pin, readonly = protect
unlock, thaw, unpin = unprotect
restore, undelete, recover, unrm, revive, undo drop = undrop {}
recycle bin, recyclebin, bin, garbage, deleted, dropped = list trash
trash empty, trash purge, empty trash, trash clear = delete trash {1:CATALOG} ID | objects leave the trash when their time ends; {command} removes one
undo, rollback, revert = undrop {1} | engines roll a table back to a snapshot; {command} restores a deleted object
versions, history, log, show history, show snapshots, changelog = list snapshots {1} | {command} has the states of a table that can be read; 'limnos audit --path PATH' has who changed it
audit-log, auditlog, events, activity, last, who did = audit
grep, locate, lookup, which, whereis, ack, where, fuzzy, discover = find
recursive, ls -r, walk, explore, hierarchy = tree
upstream, sources, parents, depends, dependencies = show lineage
downstream, impact, children, consumers, used by = lineage down
graph, lineage graph, provenance = show lineage
compact, optimize, optimise, rewrite, rewrite-data-files, bin-pack = maintenance run {} --kind compact
vacuum, vacuum table, expire, expire-snapshots, purge-snapshots = maintenance run {} --kind expire
analyze, analyse, compute statistics, compute-stats = maintenance run {} --kind statistics
gc, orphan, orphans, remove-orphan-files, clean, cleanup = maintenance run {} --kind orphans
fsck, verify, msck, validate table, check table = table check
fix, mend, repair = table mend
start, serve, up, run server, daemon, boot, launch server, server run, server serve, server up, node start = server start {-}
stop, down, kill, shutdown, restart, server stop, server restart, server kill, node restart, node stop = server check {-} | a server ends on SIGTERM: Ctrl-C in its terminal, or its service manager
status, health, ping, doctor, healthcheck, diagnose, health check, server status, server health = server check {-}
ready, wait = list nodes
upgrade, migrate, migration, migrations = server migrate
backup, dump, snapshot server, save = server backup {1:FILE}
restore server, load backup = server restore {1:FILE}
settings list, config, configure, configuration, setup, env, show settings all = server config
validate, lint, check, check pipeline, compile, parse, pipeline validate, pipeline lint = pipeline check {1:pipeline.yaml}
test, unit test, pipeline tests, test pipeline = pipeline test {1:pipeline.yaml}
plan, dry-run, diff pipeline, preview pipeline = pipeline plan {1:pipeline.yaml}
run, build, pipeline build, start pipeline, run pipeline, execute pipeline, materialize, backfill, pipeline start, pipeline trigger, pipeline execute = pipeline run {1:pipeline.yaml}
apply = pipeline run | a file with a pipeline is run; other objects have no files: 'limnos create' makes them
resume, retry run, continue, pipeline continue, pipeline retry = pipeline resume
cancel, abort, stop run, kill run, pipeline stop, pipeline abort, pipeline kill, stop pipeline = pipeline cancel {1:RUN}
publish, promote, merge branch = pipeline publish
discard, drop run = delete run
errors, failures, findings, expectations = list findings
submit, spark-submit, schedule, cron, submit job, job create, job add, job submit = create template NAME {} | jobs are programs that the server runs; schedulers start them by 'limnos job run'
job start, job trigger, job execute, start job, jobs run = job run {1:TEMPLATE}
job logs, job output, job status = show job {1:JOB}
job stop, job kill, job abort = job cancel {1:JOB}
logs, log of run, output, tail logs = show job {1:JOB}
signin, sign-in, sign in, log in, logon, auth, auth login, authenticate, connect, su, sudo = login
signout, sign-out, sign out, log out, logoff, auth logout, exit, quit, bye, disconnect = logout
id, me, user info, current user, auth status, auth whoami, iam, session = whoami
whoami all, my roles = access reach
web, ui, dashboard, gui, website, portal = console
version, ver, about = --version {-}
usage, commands, ?, docs, manual, tutorial, hello = --help {-}
complete, autocomplete, completions, bash-completion = completion bash
import table, register, register table, ingest, load, upload, add table, import lance = lance import {1:DIRECTORY} --into NAMESPACE | Lance directories are imported by {command}; Iceberg tables are registered by 'register_table' of PyIceberg or Spark
download, fetch, pull, get file = files {}
push, upload file = files {} | files of a fileset are written by its clients (gvfs, S3)
jar, jars, install, spark jar, packages = spark jars
export table, to csv, csv, unload = head {} --output csv --rows 200 | 'limnos sql' with COPY TO writes whole tables
watch, follow, tail changes, stream, cdc, subscribe changes = changes --follow
rotate, rotate-keys, rotate keys, rekey = storage rotate-key
test storage, check storage = storage check
disable, ban, suspend, deactivate, lock user = user disable
enable, unban, activate, unlock user = user enable
invite, user invite, user new, user make, user register = create user
group join, group enter, group assign = group add {1:GROUP} {2:USER}
group leave, group kick = group remove {1:GROUP} {2:USER}
storage test, storage verify = storage check
effective-permissions get, effective-permissions, list-permissions = access holders
revoke-permissions = revoke role ROLE --from USER {-}
batch-delete-table = delete
get-partitions, get-partition = show
iam create-user = create user
get serviceaccounts, get serviceaccount, get sa = list accounts
column list, columns list = show
privileges list, grants get-effective = access holders
jobs run-now, job run-now = job run {1:TEMPLATE}
iam attach-user-policy, iam add-user-to-group = grant role ROLE --to USER {-} | rights are held by roles
table columns, table column = show
policies attach, policy attach = set policy {1:NAME} {2:PATH}
principals rotate-credentials, principal rotate-credentials = create secret {1:USER} | a secret is not renewed: create another one, and delete the former
lock user = user disable
unlock user = user enable
key, keys = list keys
service account, service-account, client-secret, robot = create secret
\\dt, \\dt+ = list tables
\\dn = list namespaces
\\dv = list views
\\du, \\dg = list users
\\l, \\l+ = list catalogs
\\z, \\dp = access holders
\\c, \\connect = list {} | there is no current catalog: give whole paths, as main.raw.nyc
\\q, \\? , \\h = --help {-} | 'limnos sql' is a shell; this program runs one command
ps, top processes = list runs {-}
images = list {-} | there are no images: {command} lists the catalogs
branch, checkout, commit, stash, cherry-pick, rebase, tag branch = show {1} | branches and snapshots of tables are made by engines, and the console's page of a table lists them
rollout, rollout undo, rollback run = list runs {-}
freshness, source freshness = list findings PIPELINE {-} | checks of data are expectations of a pipeline; {command} lists what they found
seed = pipeline run {1:pipeline.yaml} | files are loaded by steps of a pipeline
init = server start {-} | {command} begins a store in ./limnos-data, and serves it; 'limnos create' makes objects
mb, make bucket = create fileset
metastores current, metastore current, metastores summary, metastore summary = list metalakes {-}
fmt, format = pipeline check {1:pipeline.yaml}
debug = server check {-}
rmi = delete
taint = list runs {-} | there is no state to mark: a run is repeated by 'limnos pipeline run'
state list, show list = list {-}
state rm = delete
state show = show
external-locations, external locations, external-location, storage-credentials = storage check {-} | locations belong to catalogs: 'limnos show CATALOG' has them; {command} checks that a catalog can reach its own
workspace, workspaces, workspace select = set profile {-} NAME | a server with a session is a profile
config use-context, config set-context = set profile
config get-contexts, config view = list profiles {-}
api-resources, api-versions, resources = --help {-}
prune, system prune = trash list {-} | files are removed by maintenance; deleted objects leave the trash when their time ends
get all, get everything = list {-}
list privileges, list permissions, show privileges all = grant --help {-} | the help of grant has the privileges; presets have those that a reader, writer or admin needs
list audit, list events, get events = audit {-}
list storage-keys = list keys {-}
list group members = show group
list members = show group
create member, add member, grant group = group add {1:GROUP} {2:USER}
delete member, remove member, revoke group = group remove {2:GROUP} {1:USER}
show token, describe token = list tokens {-}
show trash = list trash
show events = audit {-}
create view or table = console {-}
set retention, set ttl = show maintenance {1:TABLE} | retention is a policy of a table or of what is above it: 'limnos list policies'; {command} shows which applies
revert head = list {-} | there are no commits: engines roll a table back to a snapshot
describe select = sql {-} | statements are run by 'limnos sql -c', in SQL++
login as = login
role grant reader = grant role
alter user = show user {1:USER} | of a user the state and the password change: 'limnos user disable USER', 'limnos set password USER'; roles are granted: 'limnos grant role ROLE --to USER'
alter table add, alter table = set {1} --column NAME=DESCRIPTION | columns are added and changed by engines; {command} describes a column
use role = list {-} --as USER | roles are all active: --as USER runs a command with another user's
use warehouse = list catalogs {-} | there is no warehouse to choose: engines have their own computers
create warehouse = create catalog
repo, repos, repository, repo list = list catalogs {-}
get-caller-identity, account show = whoami {-}
start-query-execution, query execute = sql {-}
grant-permissions = grant --preset reader PATH --to user:USER {-}
add-permission, role assignment, role assignment create = grant role ROLE --to USER {-}
role assignment list = list roles {-}
create serviceaccount, create service-account = create secret
s3 cp, cp s3 = files PATH {-} | files of a fileset are written and read by its clients (gvfs, S3)
"""


_COMMAND_WORD: Final = re.compile(r"[a-z][a-z-]*")

OTHER_VERBS: Final = {
    typed: verb
    for line in (
        "show details detail get info inspect describe desc view show read cat",
        "list ls all list enumerate",
        "create add new make register init create",
        "delete rm remove del destroy drop unregister delete",
        "set alter edit update modify change put patch set",
        "rename mv move ren rename",
    )
    for verb, *words in [line.split()]
    for typed in words
}
"""Verbs of other tools, and ours."""
PROGRAMS: Final = frozenset(
    [
        "kubectl",
        "aws",
        "glue",
        "hdfs",
        "hadoop",
        "dfs",
        "fs",
        "s3",
        "iam",
        "lakectl",
        "gcli",
        "gravitino",
        "polaris",
        "databricks",
        "unity-catalog",
        "uc",
        "az",
        "ad",
        "snow",
        "snowsql",
        "sts",
        "lakeformation",
        "athena",
        "gcloud",
        "bq",
        "gsutil",
        "git",
        "docker",
        "terraform",
        "system",
        "resource",
        "limnosctl",
        "dbt",
        "nessie",
        "content",
        "reference",
        "dremio",
    ]
)
"""Names of other programs and their parts, which users type before a command."""
_FILE_PROGRAMS: Final = frozenset({"fs", "dfs", "hdfs", "hadoop", "lakectl", "databricks"})
"""Programs that list files."""
_FILESET: Final = re.compile(r"[^./`]+(?:\.[^./`]+){2}")
"""A path with the parts of a fileset's."""
_OTHER_KINDS: Final = {
    "volume": "filesets",
    "principal": "users",
    "account": "accounts",
    "metastore": "metalakes",
    "repo": "catalogs",
    "repository": "catalogs",
    "principal-role": "roles",
    "catalog-role": "roles",
    "registered-model": "models",
    "credential": "keys",
    "service-principal": "users",
    "serviceaccount": "accounts",
    "access-key": "secrets",
}
"""Kinds of other catalogs, and the plural of ours."""
_DEFINITIONS: Final = frozenset({"create", "drop", "use", "set", "let", "from", "describe", "analyze", "explain"})
"""The first words of statements that `sentences` does not know."""
_SQL_NOISE: Final = (("if", "not", "exists"), ("if", "exists"), ("or", "replace"))


def without_sql(tokens: Sequence[str]) -> list[str] | None:
    """Return a command line without `if exists`, `if not exists` and `or replace`; None if it has none of them."""
    lowered = [token.lower() for token in tokens]
    for filler in _SQL_NOISE:
        for at in range(1, len(tokens) - len(filler) + 1):
            if tuple(lowered[at : at + len(filler)]) == filler:
                return [*tokens[:at], *tokens[at + len(filler) :]]
    return None


def own_words(words: Sequence[str]) -> list[str] | None:
    """Return a command of another program in our words: without the program's name, `list-users` as two words,
    kinds of other catalogs as ours. None if nothing of that was typed.
    """
    first, *rest = words[0].lower(), *words[1:]
    is_aws = first == "iam" and bool(rest) and rest[0].partition("-")[0] in OTHER_VERBS
    if first in guess_table() and not is_aws:
        return None
    if first in PROGRAMS and rest:
        rest = [_plain_word(word) for word in rest]
        if " ".join(rest[:2]).lower() in guess_table():
            return rest
        if rest[0].lower() not in guess_table() and (meant := own_words(rest)) is not None:
            return meant
        at = next((at for at, word in enumerate(rest) if word.lstrip("-").lower() in _known_starts()), 0)
        earlier_words = [word for word in rest[:at] if word.lower() not in PROGRAMS]
        if earlier_words and not _is_kind(earlier_words[0]):
            return None
        inner = [rest[at].lstrip("-"), *earlier_words, *rest[at + 1 :]]
        if first in _FILE_PROGRAMS and inner[0].lower() == "ls" and _FILESET.fullmatch(inner[-1]):
            return ["files", *inner[1:]]
        return own_words(inner) or (inner if inner[0].lower() in _known_starts() else None)
    verb, _, kind = first.partition("-")
    if kind and verb in OTHER_VERBS and _is_kind(kind):
        ours = "list" if OTHER_VERBS[verb] == "show" and kind.endswith("s") else OTHER_VERBS[verb]
        return [ours, _our_kind(kind, ours), *rest]
    if rest and f"{first} {rest[0].lower()}" in guess_table():
        return None
    singular = first.removesuffix("s").replace("repositorie", "repository")
    if singular in _OTHER_KINDS and singular != "account":
        other = OTHER_VERBS.get(rest[0].lower(), "") if rest else "list"
        if not other and rest[0].lower() in {"grant", "revoke", "assign"} and singular.endswith("-role"):
            way = ("revoke", "--from") if rest[0].lower() == "revoke" else ("grant", "--to")
            return [way[0], "role", *rest[1:2], way[1], "USER", *rest[2:]]
        return [other, _our_kind(first, other), *rest[1:]] if other else ["list", _our_kind(first, "list")]
    return None


def _is_kind(word: str) -> bool:
    """Return whether a word is a kind, a path, or the beginning of a known phrase, and not a kind of others alone."""
    from limnos.cli.operations import KIND_WORDS

    plain = word.lower()
    singular = plain.removesuffix("s")
    return (
        plain in KIND_WORDS
        or singular in {*KIND_WORDS, *_OTHER_KINDS}
        or plain in guess_table()
        or not plain.replace("-", "").isalpha()
    )


def _plain_word(word: str) -> str:
    """Return a word of another program as ours: `lakefs://main/raw` as a path, `Name=sales` as a name."""
    scheme, slashes, rest = word.partition("://")
    if slashes and scheme in {"lakefs", "uc", "nessie"}:
        return ".".join(part for part in rest.split("/") if part)
    return word.removeprefix("Name=") if word != "Name=" else word


def _our_kind(kind: str, verb: str) -> str:
    our_kind = _OTHER_KINDS.get(kind.removesuffix("s"), kind)
    return our_kind if verb == "list" or not our_kind.endswith("s") else our_kind.removesuffix("s")


@functools.cache
def _known_starts() -> frozenset[str]:
    from limnos.cli.operations import COMMANDS, KIND_WORDS, VERB_ALIASES

    return frozenset({*guess_table(), *COMMANDS, *KIND_WORDS, *VERB_ALIASES})


@functools.cache
def guess_table() -> dict[str, tuple[str, str]]:
    """Return for each typed phrase the command and the sentence about it; an empty sentence without one. Commands of
    rooms that are not installed are left out.
    """
    result: dict[str, tuple[str, str]] = {}
    for line in _TABLE.strip().splitlines():
        typed, _, meant = line.partition(" = ")
        command, _, note = meant.partition(" | ")
        for phrase in typed.split(", ") if is_installed(command.split()) else ():
            result.setdefault(phrase, (command, with_command(note, command)))
    return result


def with_command(note: str, command: str) -> str:
    """Return a sentence with the name of the command for `{command}`: its first words, without arguments."""
    name = itertools.takewhile(_COMMAND_WORD.fullmatch, command.split())
    return note.replace("{command}", f"'{' '.join(['limnos', *name])}'")


def guessed_words() -> list[str]:
    """Return the phrases of one word, for the nearest to a misspelt one."""
    return [phrase for phrase in guess_table() if " " not in phrase]


FILLERS: Final = frozenset(
    [
        "a",
        "all",
        "an",
        "are",
        "as",
        "do",
        "does",
        "for",
        "from",
        "i",
        "in",
        "into",
        "is",
        "me",
        "my",
        "of",
        "on",
        "the",
        "to",
        "what",
        "with",
    ]
)
"""Words that join arguments in a sentence."""
_PLACE: Final = re.compile(r"\{([12qr+-]?(?::[^}]*)?)\}")


def command_for(words: Sequence[str], *, least: int = 1) -> tuple[list[str], str] | None:
    """Return the command for the longest phrase at the beginning of what was typed, with the arguments that follow it,
    and a sentence about it; None if the table has no such phrase of at least `least` words.
    """
    for length in range(3, least - 1, -1):
        phrase = " ".join(words[:length]).lower()
        if len(words) >= length and phrase in guess_table():
            command, note = guess_table()[phrase]
            return _fill_arguments(command, words[length:]), note
    return None


def _fill_arguments(command: str, rest: Sequence[str]) -> list[str]:
    """Return the words of a command with the typed arguments, without words that join them in a sentence."""
    arguments = [word for word in rest if word.lower() not in FILLERS]
    result: list[str] = []
    for word in shlex.split(command):
        if word == "{}":
            result += arguments or ["PATH"]
        elif word != "{-}":
            result.append(_PLACE.sub(lambda match: _argument(match, rest=rest, arguments=arguments), word))
    return result if _PLACE.search(command) else [*result, *arguments]


def _argument(match: re.Match[str], *, rest: Sequence[str], arguments: Sequence[str]) -> str:
    """Return the text for a place in a command: one argument, the whole text, or the text after the phrase."""
    name, _, placeholder = match[1].partition(":")
    if name == "q":  # `sentences` knows whole statements, so that this is none
        return "STATEMENT"
    if name == "r":
        text = " ".join(rest).rstrip(";") or "select 1"
        return f"{text};" if text.split()[0].lower() in {*_DEFINITIONS, "select"} else "STATEMENT"
    if name == "+":
        return " ".join(arguments[1:]) or placeholder
    at = int(name) - 1
    return arguments[at] if at < len(arguments) else placeholder or "PATH"
