# SPDX-License-Identifier: Apache-2.0
"""Whole lines of other tools' habits, and the command to type instead.

Unlike a word of `guesses`, a line here is matched from its first word to its last, so that no name or path that was
typed gets lost or becomes another thing. Words in lower case are typed as they stand, in any case, `a|b` is either, and
`[a]` may be missing. Words in upper case are arguments: PATH and TARGET have a dot or a back-quote, FILE a dot or a
slash, SENTENCE a space, DATABASE ends as a file of SQLite does, `TEXT...` is all words to the end, others are any word.
The command repeats the arguments of its line; other words in upper case are places to fill. In a sentence, `{command}`
is the name of the command.
"""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from limnos.cli.foreign_flags import PRIVILEGE_ACTIONS
from limnos.cli.guesses import with_command
from limnos.cli.signatures import is_installed

_LINES: Final = """
pipeline logs|log|history|status|state last, logs last = show run last | {command} has the steps and findings of the newest run
pipeline rerun|retry|restart|continue last = pipeline resume last | {command} goes on where the newest run ended
pipeline list|ls|show run|runs = list runs
pipeline pause PLAIN = schedule pause PLAIN
pipeline|schedule unpause PLAIN = schedule resume PLAIN
promote YAML = pipeline promote YAML --env ENVIRONMENT | {command} publishes what an environment has built
rollback|revert|restore|rollback-to-snapshot [table] OBJECT [to|to-snapshot|to-version] [snapshot|version] NUMBER, table rollback|revert|restore OBJECT [to|to-snapshot|to-version] [snapshot|version] NUMBER = head OBJECT --snapshot NUMBER | a rollback is a commit by an engine: table.manage_snapshots().rollback_to_snapshot(NUMBER).commit() in PyIceberg, or CALL OBJECT_CATALOG.system.rollback_to_snapshot('OBJECT_BELOW', NUMBER) in Spark; {command} shows rows of that snapshot
rollback|revert|rollback-to-snapshot [table] OBJECT, table rollback|revert OBJECT = list snapshots OBJECT | a rollback is a commit by an engine: table.manage_snapshots().rollback_to_snapshot(ID).commit() in PyIceberg, or CALL OBJECT_CATALOG.system.rollback_to_snapshot('OBJECT_BELOW', ID) in Spark; {command} has the ids; a deleted object is restored by 'limnos undrop OBJECT'
time travel, time-travel|timetravel|as-of, as of = head TABLE --snapshot ID | {command} has rows of an earlier snapshot by its id, which 'limnos list snapshots TABLE' lists; engines read one, too
time travel OBJECT, time-travel|timetravel|as-of OBJECT, as of OBJECT, head OBJECT as of = head OBJECT --snapshot ID | {command} has rows of an earlier snapshot by its id, which 'limnos list snapshots OBJECT' lists; engines read one, too
time travel OBJECT [to|at] [snapshot|version] NUMBER, time-travel|timetravel|as-of OBJECT [to|at] [snapshot|version] NUMBER, as of OBJECT NUMBER, head OBJECT as of [snapshot|version] NUMBER, head OBJECT at|snapshot|version NUMBER = head OBJECT --snapshot NUMBER | the id of a snapshot is an option
!tables|!table = list tables | !tables is of another shell; {command} lists the tables
!columns|!describe NAME = show NAME | !columns is of another shell; {command} shows columns
!connect [TEXT...] = login | !connect is of another shell; {command} signs in to a server
!quit|!help|!q|!exit [TEXT...] = --help | !quit and !help are of another shell
show|describe|desc|get column DEEP = show DEEP | DEEP_TYPED is a column: {command} shows it with the others of the table
get|cat OBJECT ROOTED = files OBJECT | files of a fileset, such as ROOTED, are read by its clients (gvfs, S3); {command} lists them
add-tag|addtag|attach-tag|apply-tag|tag-add TAG PATH, add-tag|addtag|attach-tag|apply-tag|tag-add PATH TAG = set tag TAG PATH
comment LANCE [TEXT...], comment [on] table LANCE [is] TEXT... = set LANCE --tag TAG | a Lance table has no comment, and its namespace has: 'limnos set NAMESPACE --comment TEXT'; {command} tags the table
comment [on] table|view|schema|namespace|database|fileset|model PATH [is] TEXT... = set PATH --comment TEXT
lakectl|git diff = changes | branches of tables are made by engines; {command} shows the latest changes
nessie|lakectl tag [TEXT...] = list | tags and branches of commits are made by engines, and 'limnos list tags' lists labels; {command} lists the catalogs
nessie|lakectl = list | tags and branches of commits are made by engines; {command} lists the catalogs
msck [repair] table WORD, msck repair WORD = table check CATALOG.NAMESPACE.WORD | partitions need no repair; {command} compares the files and the metadata of a table
search-table|search-tables|search_tables|find-table|find-tables|find_tables|search-objects WORD = find WORD
link|attach|register|add dashboard PATH = create dashboard PATH --url URL | a dashboard is the page of another tool, and {command} registers it; --tables names the tables that it shows
link|attach|register|add dashboard PATH [to|with] TARGET = create dashboard PATH --url URL --tables TARGET | a dashboard is the page of another tool, and {command} registers it with the tables that it shows
dashboards = list dashboards
dashboards PATH = list dashboards PATH
export table|csv MAIN, csv|unload|to-csv MAIN, to csv MAIN, download|fetch|pull MAIN = sql --results csv -c MAIN_ROWS | {command} prints the rows of MAIN, and a shell writes them to a file by '> FILE'; files of a fileset are listed by 'limnos files MAIN'
export|csv|unload|download|fetch|pull|cp|copy|extract|dump|get MAIN LOCAL = sql --results csv -c MAIN_ROWS | {command} prints the rows of MAIN, and a shell writes them to a file by '> LOCAL'; files of a fileset are listed by 'limnos files MAIN'
alter group GROUP add user|member USER = group add GROUP USER | members are added by 'group add'
alter group GROUP drop|remove user|member USER = group remove GROUP USER | members are removed by 'group remove'
alter role NAME = show role NAME | a role has privileges, and no attributes; {command} shows them
rotate|renew|reset|refresh credential|credentials|secret|secrets [of|for] USER = create secret USER | a secret is not renewed: create another one, and delete the former by 'limnos delete secret USER ID'
external-location|external-locations create|add NAME = set PATH --allowed-location URL | locations belong to catalogs, and have no names; the flag replaces the locations that the catalog has
permission|permissions|grant|grants create|add PATH = grant PRIVILEGE --on PATH --to HOLDER
create row filter|policy NAME on PATH TEXT..., create policy NAME on PATH using|for TEXT..., create policy NAME on PATH = create restriction NAME PATH --filter CONDITION | rows are restricted by a restriction
create mask NAME on PATH [TEXT...], create masking|column policy|mask NAME on PATH TEXT... = create restriction NAME PATH --mask COLUMN=ACTION | values are masked by a restriction
access diff USER OTHER PATH = access diff USER OTHER --at PATH | the object is an option
access who|holders ACTION PATH = access who PATH --action ACTION | the action is an option
pipeline status|state|info|history|logs|log PLAIN = list runs PLAIN | {command} lists the runs of PLAIN, if a pipeline is called so: 'limnos show run RUN' has the steps and findings of one
pipeline stop|kill|abort PLAIN = list runs PLAIN | a run is cancelled by its id: 'limnos pipeline cancel RUN'; {command} lists the runs of PLAIN
pipeline new|scaffold|generate|start YAML = create pipeline YAML | a pipeline is a file; {command} writes a small one to begin with
pipeline new|scaffold|generate|start WORD = create pipeline WORD.yaml | a pipeline is a file; {command} writes a small one to begin with
pipeline add|deploy|register YAML = pipeline run YAML | a pipeline is a file; its first run creates it
submit|launch|deploy|exec|start YAML = pipeline run YAML
schedule|cron YAML SENTENCE, pipeline schedule YAML SENTENCE = pipeline schedule YAML --cron SENTENCE | the times are an option of 'pipeline schedule'
schedule|cron|crontab YAML = pipeline schedule YAML --cron CRON
cron|crontab NAME = pipeline schedule PIPELINE_FILE --cron CRON | a pipeline is scheduled by its file; NAME is the name of one, or none
cat|less|more|head|tail|open|edit YAML = pipeline plan YAML | a file of this machine is read by the shell; {command} shows what the pipeline does
logs PLAIN = list runs PLAIN | a server writes its log to standard error; {command} lists the runs of PLAIN, if a pipeline is called so
clone URL = export lake | tables are copied by engines; a whole metalake by export and import
login URL USER = login USER --uri URL
mb NAMESPACE = create namespace NAMESPACE
select PATH = head PATH
load|import|ingest|insert PATH LOCAL = show PATH | rows, such as those of LOCAL, are written to a table by engines and by pipelines; {command} shows PATH
cp|copy|extract|unload|dump|get PATH LOCAL = head PATH --output csv --rows 200 | rows of a table are written by a shell to a file, such as LOCAL; an engine reads all of them
copy into PATH = show PATH | rows are written to a table by engines and by pipelines; {command} shows PATH
workspace|workspaces|context|contexts ls|list = list profiles
[mlflow] experiments|experiment list|search = list runs | experiments belong to other tools; {command} lists the runs of pipelines
mlflow models list|search = list models
secrets list-scopes = list secrets USER
vector|lance search|query PATH = show PATH | vectors are searched by LanceDB's clients; {command} shows the columns of the table
lance compact|optimize|vacuum PATH = maintenance run PATH --kind compact
branch|branches list PATH = show PATH | branches of tables are on the console's page of the object; {command} shows it
role add NAME = create role NAME | a role is created, and given by 'limnos grant role NAME --to USER'
show|describe template|templates NAME = list templates | templates are listed with their programs
model|models register|link PATH URI = show PATH | versions of a model are linked by limnos.client (models.link) and Gravitino's clients (link_model_version); {command} shows the model and its versions
sql \\dt|\\d|\\dt+ = list tables
sql \\l|\\dn = list namespaces
sql \\du = list users
remove|delete|drop|rm|kick [user] USER from [group] GROUP, group rm|delete|drop|del|kick GROUP USER = group remove GROUP USER
add [user] USER to group GROUP = group add GROUP USER
add|attach|put|apply tag TAG [to|on] PATH = set tag TAG PATH
tag add|attach|apply|set TAG to|on PATH = set tag TAG PATH | the path follows the tag, without a word between them
set tag TAG PATH [column] PLAIN = set tag TAG PATH --column PLAIN | the column is an option
add role ROLE [to] [user] NAME = grant role ROLE --to NAME
list|show policies|policy on|of|for|at PATH = list policies PATH
list|show tags|tag on|of|for|at PATH = list tags PATH
set owner [of] PATH [to] user NAME = set owner PATH NAME
set owner [of] PATH [to] group|role NAME = set PATH --owner group:NAME
create namespace|schema CATALOG NAME = create namespace CATALOG.NAME
maintenance run WORD PATH = maintenance run PATH --kind WORD | the kind of maintenance is an option
protect PATH off|false|no = unprotect PATH
createuser NAME = create user NAME
iam list-users|get-users|users = list users
iam list-roles|get-roles|roles = list roles
iam list-groups|get-groups|groups = list groups
auth token = create token
export PATH FILE = head PATH --output csv --rows 200 | 'limnos export' writes a whole metalake; {command} prints rows of a table, which a shell writes to FILE
restore table|view PATH to version|timestamp|snapshot [TEXT...] = show PATH | engines roll a table back to a snapshot: {command} shows the current one; a deleted object is restored by 'limnos undrop PATH'
audit NUMBER = audit --limit NUMBER
lineage PATH down|downstream = lineage down PATH
lineage PATH up|upstream = show lineage PATH
[databricks|unity-catalog|uc] tables list CATALOG NAME = list tables CATALOG.NAME
trash restore|undrop NUMBER = undrop PATH --id NUMBER
remove|delete|drop|unset role ROLE from [user] USER = revoke role ROLE --from USER
remove|delete|drop|unset tag TAG [from|of|on] PATH = tag remove TAG PATH
remove|delete|drop|unset policy POLICY from|of|on PATH, unset policy POLICY PATH = policy remove POLICY PATH
remove|delete|drop restriction|mask|filter NAME from|of|on PATH = delete restriction NAME PATH
undrop|restore|recover user NAME = create user NAME | a deleted user is not restored: {command} creates a new one, to whom its roles are granted again
undrop|restore|recover group NAME = create group NAME | a deleted group is not restored: {command} creates a new one, without users and roles
undrop|restore|recover role NAME = create role NAME | a deleted role is not restored: {command} creates a new one, without privileges
deny|forbid|block WORD = grant WORD --on PATH --to ROLE --deny | a denial is held by a role, which users and groups are given by 'limnos grant role ROLE --to NAME'
edit|update|modify|change role NAME = show role NAME | a role has privileges, and no attributes: 'limnos grant PRIVILEGE --on PATH --to NAME' adds one, and 'limnos revoke' takes it; {command} shows them
set|edit|update|modify|change user NAME = show user NAME | of a user the state and the password change: 'limnos user disable NAME', 'limnos user enable NAME', 'limnos set password NAME'; roles are granted: 'limnos grant role ROLE --to NAME'
set row filter|policy PATH, set row-filter|row-policy|filter|rls PATH = create restriction NAME PATH --filter CONDITION | rows are filtered by a restriction
create masking|mask|column-mask|column-masking policy NAME = create restriction NAME PATH --mask COLUMN=ACTION | values are masked by a restriction
create row access|filter|security policy NAME, create row-access|row-filter|row-access-policy|rls policy NAME = create restriction NAME PATH --filter CONDITION | rows are filtered by a restriction
apply|attach|set masking|mask|column-mask policy NAME [to|on] PATH = create restriction NAME PATH --mask COLUMN=ACTION | values are masked by a restriction, of a table or of all tables of a namespace
revoke|detach|unset|unapply policy NAME [from|on] PATH = policy remove NAME PATH
set protection PATH off|false|no|none, protection off PATH, set protection off PATH = unprotect PATH
set protection PATH on|true|yes, protection on PATH, set protection on PATH = protect PATH
ranger [TEXT...] = access who PATH | policies of Ranger are grants and restrictions here: 'limnos grant', 'limnos create restriction'; {command} has who may do what on an object
auth can-i = access reach | {command} has all that you may do
diff packages|models|environments|env [TEXT...] = pipeline plan FILE --env ENVIRONMENT | {command} shows what a run in an environment would change; 'limnos pipeline diff RUN' compares the rows of a run
sudo TEXT... = list --as USER | --as USER runs any command as that user
set role none|all|default = whoami | all roles of a user are active, and none is chosen: {command} shows yours; 'limnos list --as USER' acts as another user
set role NAME = whoami | all roles of a user are active, and none is chosen: {command} shows yours; 'limnos list --as USER' acts as another user
use|switch metalake NAME = list --metalake NAME | there is no current metalake: it is chosen by --metalake or LIMNOS_METALAKE
request access [to|on] PATH read|reader = request access PATH --preset reader | the preset is an option
request access [to|on] PATH write|writer = request access PATH --preset writer | the preset is an option
request access [to|on] PATH admin = request access PATH --preset admin | the preset is an option
audit show NUMBER, show audit NUMBER = audit --id NUMBER | records are shown by filters: {command} has those about the object with this id, --request those of a request
audit show RUN, show audit RUN = audit --request RUN | records are shown by filters: {command} has those of one request
log = audit | {command} shows who did what, the newest first; a server writes its own log to standard error
create user NAME [with] password SECRET, create user NAME identified by SECRET = create user NAME | a user is created without a password: then 'limnos set password NAME' sets one
access missing ACTION PATH = access explain ACTION PATH | 'access explain' names the missing rights
create service account NAME = create user NAME | an account of a program is a user with a secret: then 'limnos create secret NAME'
create row access policy NAME on PATH, create row policy|filter NAME on PATH = create restriction NAME PATH --filter CONDITION | rows are restricted by a restriction
create masking|mask policy NAME on PATH, create column mask NAME on PATH = create restriction NAME PATH --mask COLUMN=ACTION | values are masked by a restriction
drop|delete|remove row access policy NAME on|from PATH, drop|delete|remove masking policy NAME on|from PATH = delete restriction NAME PATH
set mask|masking PATH COLUMN, set mask|masking COLUMN on PATH = create restriction NAME PATH --mask COLUMN=ACTION | values are masked by a restriction
set mask|masking EQUATION PATH, mask PATH EQUATION = create restriction NAME PATH --mask EQUATION | values are masked by a restriction
transfer|give|move ownership [of|on] PATH to [user] NAME = set owner PATH NAME
chmod NUMBER PATH = access who PATH | rights are granted to roles, users and groups, and have no numbers: {command} lists who has some
give|share PATH [to|with] [user] NAME, chmod|setfacl NAME PATH = grant --preset reader PATH --to NAME | {command} gives the right to read it; 'limnos set owner PATH NAME' gives it away
grant reader|viewer to [user] NAME on PATH, grant NAME read|reader|viewer [on] PATH, grant read|select|reader|viewer PATH to [user] NAME = grant --preset reader PATH --to NAME
grant writer|editor to [user] NAME on PATH, grant NAME write|writer|editor [on] PATH, grant write|insert|update|modify|writer|editor PATH to [user] NAME = grant --preset writer PATH --to NAME
grant admin to [user] NAME on PATH, grant NAME admin [on] PATH, grant admin|owner PATH to [user] NAME = grant --preset admin PATH --to NAME
unshare PATH [from|with] [user] NAME, revoke PATH [from] [user] NAME, revoke access|read|reader|viewer [to|on] PATH from [user] NAME = revoke --preset reader PATH --from NAME
why can USER read|select PATH, why USER PATH = access explain table_read PATH --for USER
revoke PRIVILEGE PATH [from] NAME = revoke PRIVILEGE_TYPED --on PATH --from NAME | a privilege is taken from a role, and the object stands after --on; a user loses all that a reader needs by 'limnos revoke --preset reader PATH --from NAME'
grant PRIVILEGE PATH [to] NAME = grant PRIVILEGE_TYPED --on PATH --to NAME | a privilege is granted to a role, and the object stands after --on; a user gets all that a reader needs by 'limnos grant --preset reader PATH --to NAME'
list|show grants|privileges|permissions PATH = access holders PATH
list|show grants|privileges|permissions PLAIN = access what PLAIN | {command} has what a user may do, 'limnos show user PLAIN' the roles; those of a role are in 'limnos show role PLAIN'
grants|privileges|permissions list|get|show = access holders
list|show access [of|for] WORD, grants|privileges|permissions WORD = access what WORD
list|show audit [of|for] PATH = audit --path PATH
audit tail = audit | the newest records stand first; 'limnos changes --follow' follows changes
export catalog|schema|namespace|table NAME = export METALAKE | a whole metalake is exported, with all of its catalogs; rows of a table by 'limnos head PATH --output csv'
drop|delete owned by USER, list|show owned by USER = find owner:USER | {command} lists the objects of an owner; 'limnos set owner PATH OWNER' gives one to another
reassign|transfer owned by USER to OWNER = find owner:USER | {command} lists the objects of an owner; 'limnos set owner PATH OWNER' gives one to OWNER
head PATH NUMBER = head PATH --limit NUMBER
list|show indexes|indices PATH = show PATH
partitions|partition PATH, list|show partitions PATH = show PATH | partition_by has the fields and transforms of a table's partitions
quality|checks|expectations PATH = show PATH | checks of data are expectations of a pipeline, and 'limnos list findings PIPELINE' has what they found; {command} names the pipelines that wrote the table
list NAMESPACE tables|table = list tables NAMESPACE | the kind stands before the path
list NAMESPACE views|view = list views NAMESPACE | the kind stands before the path
list NAMESPACE filesets|fileset = list filesets NAMESPACE | the kind stands before the path
list NAMESPACE namespaces|schemas = list namespaces NAMESPACE | the kind stands before the path
index PATH = show PATH | indexes of datasets are made by CREATE INDEX of SQL++, those of Lance tables by LanceDB; {command} shows the table
server stop|shutdown|kill = list nodes | a server ends on SIGTERM: Ctrl-C in its terminal, or its service manager; {command} lists the nodes
model versions PATH, model list versions PATH, list model versions PATH = show PATH
create|new token NAME, token create|new|add NAME = create token --for NAME | the user of a token is an option
\\d|\\d+ = list
\\d|\\d+ NAME = show NAME
d|d+ = list | a shell takes the backslash of \\d; {command} lists the catalogs
d|d+ NAME = show NAME | a shell takes the backslash of \\d, which is 'limnos show' here
dn|dn+ = list namespaces
dt+ = list tables
dv|dv+ = list views
l+ = list catalogs
alter role NAME rename to NEW = create role NEW | a role keeps its name, which grants and the audit have: create the new role with the same grants, delete the former one
alter group NAME rename to NEW = create group NEW | a group keeps its name, which grants and the audit have: create the new group with the same users and roles, delete the former one
alter user NAME rename to NEW = create user NEW | a user keeps its name, which tokens and the audit have: create the new user, grant it the same roles, delete the former one
alter catalog NAME rename to NEW = rename catalog NAME NEW
alter metalake NAME rename to NEW = rename metalake NAME NEW
alter tag NAME rename to NEW = rename tag NAME NEW
delete|drop|remove secret NUMBER = delete secret USER NUMBER | a secret is deleted with the name of its user: 'limnos list secrets USER' has its number
show|list freshness PATH = show PATH | last_change is the time of the latest commit to a table; checks of data are expectations of a pipeline
alter user NAME disable|disabled|off, user deactivate|offboard|ban|suspend|block NAME, deactivate|offboard|suspend user NAME = user disable NAME
alter user NAME enable|enabled|on, user activate|reactivate|unban NAME, activate|reactivate user NAME = user enable NAME
alter table|view|schema|namespace|database PATH [set] owner to [user] NAME, alter table|view|schema|namespace|database PATH set owner NAME = set PATH --owner NAME
alter table|view|schema|namespace|database PATH [set] owner to role|group NAME = set PATH --owner group:NAME
alter catalog CATALOG [set] owner to [user] NAME = set CATALOG --owner NAME
alter table|view|schema|namespace|database PATH rename to NAME = rename PATH NAME
alter table|view PATH set tags|tag EQUATION = set PATH --tag EQUATION_KEY | values of tags are set in the console and over Gravitino REST: {command} attaches the tag without one, 'limnos set PATH --property EQUATION' keeps a property
alter table|view|schema|namespace|database PATH set comment [=] TEXT = set PATH --comment TEXT
alter table|view PATH set tags|tag NAME = set PATH --tag NAME
schema|schemas|namespace|namespaces create NAME CATALOG = create namespace CATALOG.NAME
get|describe pods|pod = list nodes | the servers of Limnos are nodes
get|describe ns = list namespaces
createdb NAME = create catalog NAME | a database at the top is a catalog; below one it is a namespace: 'limnos create namespace CATALOG.NAME'
config current-context = list profiles | a context is a profile, which 'limnos set profile NAME' chooses
docs generate|build|serve FILE = pipeline docs FILE --out DIRECTORY
docs generate|build|serve = pipeline docs PIPELINE_FILE --out DIRECTORY | {command} writes pages about a pipeline's tables; the documentation of Limnos is in the console, at /docs
diff REVISION PATH = show PATH | versions of a table are its snapshots, which engines compare; {command} shows the table
clean = list trash | a run leaves no files to clean; {command} lists the dropped objects, and 'limnos maintenance run PATH --kind orphans' deletes unreferenced files of a table
revoke all [privileges] from [user] NAME = show user NAME | there is no revoke of everything: {command} shows the roles, and 'limnos revoke role ROLE --from NAME' takes one away
[show] grants for|to|of|on user NAME, [show] grants for|to|of NAME, list grants|privileges|permissions for|of|to NAME = access what NAME
show grants for|to|of|on role NAME, list grants of role NAME = show role NAME
show grants on table|view|schema|namespace|database|catalog PLACE, list grants on PLACE = access holders PLACE
config set [KEY] [TEXT...], set config [KEY] [TEXT...] = server config | settings are set in the configuration file, by variables LIMNOS__ or by flags of 'limnos server start'; {command} shows them
restrict PATH, restrict table|view PATH = create restriction NAME PATH --filter CONDITION
restrict PATH to WHO = create restriction NAME PATH --filter CONDITION --to WHO
mask PATH COLUMN [for|from|to] USER, mask column COLUMN of|in|on PATH for|from|to USER = create restriction NAME PATH --mask COLUMN=ACTION --to user:USER | values are masked by a restriction; without --to it applies to all users, and 'limnos create restriction --help' lists the actions
mask PATH COLUMN, mask column COLUMN of|in|on PATH, mask column PATH COLUMN = create restriction NAME PATH --mask COLUMN=ACTION
show mask|masks|filter|filters [of|on|for] PATH, list masks|filters PATH = show restriction PATH
recover|restore|undelete|undrop table|view|schema|namespace|database|fileset|model PATH = undrop PATH
restore|recover DATABASE = server restore DATABASE | a copy of the store is restored while no server uses the store; a deleted object by 'limnos undrop PATH'
group rename NAME NEW = create group NEW | a group keeps its name, which grants and the audit have: create the new group with the same users and roles, delete the former one
user rename NAME NEW = create user NEW | a user keeps its name, which tokens and the audit have: create the new user, grant it the same roles, delete the former one
role rename NAME NEW = create role NEW | a role keeps its name, which grants and the audit have: create the new role with the same grants, delete the former one
group members|users NAME, list members|users of|in [group] NAME, list members NAME, list group members NAME, members of [group] NAME = show group NAME
list users of|in|with role NAME, users with role NAME = show role NAME
user groups|roles NAME, list groups|roles of NAME, groups|roles of NAME = show user NAME
access why|check PATH = access explain table_read PATH
access ask|request PATH, request access to|on PATH = request access PATH
what can USER read|see|access|do|use = access reach --for USER
request|ask [for] access [to|on] NAME because|since TEXT... = request access NAME --reason TEXT | the reason is an option
request|ask [for] access [to|on] NAME SENTENCE = request access NAME --reason SENTENCE | the reason is an option
decline|refuse|deny|reject request ID because|since TEXT... = decline request ID --note TEXT | the note is an option
decline|refuse|deny|reject request ID SENTENCE = decline request ID --note SENTENCE | the note is an option
cancel|delete|revoke|remove|drop|rm|retract|abort|stop|end|undo [my] [access] request ID, request cancel|delete|revoke|remove|drop|rm|retract|abort|stop|end|undo ID, withdraw my|access request ID = withdraw request ID | {command} withdraws a request of your own; another's is declined by 'limnos decline request ID'
withdraw RUN = withdraw request RUN
access can|why|check USER PATH = access explain table_read PATH --for USER
[access] can|check USER read|select PATH = access explain table_read PATH --for USER
[access] can|check USER write|insert|update PATH = access explain table_commit PATH --for USER
[access] can [i] read|select PATH = access explain table_read PATH
[access] can [i] write|insert|update PATH = access explain table_commit PATH
access me|mine|list|show = access reach
access user USER, access of USER = access what USER
storage list|show|ls = list keys | locations belong to catalogs, and 'limnos show CATALOG' has each; {command} lists the keys of their secrets
build|materialize FILE, pipeline build FILE, dbt build|run FILE = pipeline run FILE | {command} runs it; 'limnos pipeline check FILE' only checks it
seed FILE = pipeline run PIPELINE_FILE | files such as FILE are sources, which a step of a pipeline loads
pipeline retry|continue FILE = pipeline resume last | a run is resumed by its id: 'limnos list runs' has those of FILE and the others; {command} resumes the newest
alter user NAME set disabled [=] true|yes|on|1, alter user NAME set disabled=true|disabled=yes|disabled=on|disabled=1 = user disable NAME
alter user NAME set enabled [=] false|no|off|0, alter user NAME set enabled=false|enabled=no|enabled=off|enabled=0 = user disable NAME
alter user NAME set disabled [=] false|no|off|0, alter user NAME set disabled=false|disabled=no|disabled=off|disabled=0 = user enable NAME
alter user NAME set enabled [=] true|yes|on|1, alter user NAME set enabled=true|enabled=yes|enabled=on|enabled=1 = user enable NAME
alter user NAME [set|with] password [=] [SECRET], alter user NAME identified by SECRET = set password NAME | the new password is asked for, and is no argument
alter user NAME set TEXT... = show user NAME | of a user the state and the password change: 'limnos user disable NAME', 'limnos user enable NAME', 'limnos set password NAME'
copy into PATH from SOURCE [TEXT...] = show PATH | rows, such as those of SOURCE, are written by engines, or loaded by a step of a pipeline; {command} shows the table
put|get STAGED STAGE, put|get STAGE [STAGED] = list filesets | a stage is a fileset here: its files are read and written by its clients (gvfs, S3); {command} lists the filesets
grants|permissions|privileges update|set|patch [table|view|schema|namespace|database|catalog] PATH = grant --preset reader PATH --to NAME | rights are granted and revoked one by one; 'limnos access holders PATH' lists who has some
dir|ll FOLDER = files FOLDER /FOLDER_REST | FOLDER_TYPED is in a fileset: the directory stands after the fileset's path
rm|del|remove|rmdir FOLDER = files FOLDER | files of a fileset, such as FOLDER_TYPED, are deleted by its clients (gvfs, S3); {command} lists them
cat|less|more|tail|preview FOLDER = head FOLDER --file FOLDER_REST | the file of a fileset is named by --file, and not in the path as FOLDER_TYPED
cp|copy|download|fetch|pull FOLDER [PLACE] = files FOLDER | files of a fileset, such as FOLDER_TYPED, are copied by its clients (gvfs, S3); {command} lists them
presign|sign FOLDER = files FOLDER | files of a fileset, such as FOLDER_TYPED, are read by its clients with credentials of the server; {command} lists them
sync|rsync|mirror PLACE OBJECT, sync|rsync|mirror OBJECT PLACE = files OBJECT | files of a fileset are copied by its clients (gvfs, S3); {command} lists them
dir|ll STORE, s3|gsutil ls STORE, aws|gcloud s3|storage ls [STORE] = list | files of a store are listed by its own tools, and those of a fileset by 'limnos files'; {command} lists the catalogs
branch|checkout|commit|merge|stash WORD, merge WORD into|to|from TEXT... = list | branches of tables, and commits to them, are made by engines; a pipeline has environments by --env; {command} lists the catalogs
merge into PATH TEXT... = show PATH | rows are merged by engines and by steps of pipelines; {command} shows the columns
insert|upsert|merge [into] PATH = show PATH | rows are written by engines, and by 'limnos sql -c STATEMENT' to datasets of SQL++; {command} shows the columns
revert|rollback PATH [NUMBER], revert|rollback table PATH [NUMBER] = show PATH | engines roll a table back to a snapshot: {command} shows the current one; a deleted object is restored by 'limnos undrop PATH'
[auth] can-i read|select|get PATH = access explain table_read PATH
[auth] can-i write|insert|update PATH = access explain table_commit PATH
[auth] can-i PRIVILEGE PATH = access explain PRIVILEGE PATH | PRIVILEGE_TYPED is a privilege: {command} explains an action that needs it
[auth] can-i PRIVILEGE = access explain PRIVILEGE | PRIVILEGE_TYPED is a privilege: {command} explains an action that needs it
logs|log RUN_PATH = show run RUN_PATH | RUN_PATH_TYPED is a run, which is shown with its steps and findings
logs|log JOB_PATH = show job JOB_PATH | JOB_PATH_TYPED is a job
move|relocate [table|view] OBJECT [to|into] NAMESPACE = rename OBJECT NAMESPACE.OBJECT_LAST | an object is moved by 'limnos rename', and its new path ends with its name
create share NAME = create role NAME | there are no shares: a role has rights, and is granted to users and groups
create volume PATH = create fileset PATH | a volume is a fileset here
create external location NAME = set PATH --allowed-location URL | locations belong to catalogs, and have no names
lineage add|create|set|link PATH TARGET, lineage add|create|set|link PATH to TARGET = show lineage PATH | lineage is written by pipelines, and by engines as OpenLineage events; {command} shows that of PATH, and 'limnos show lineage TARGET' that of TARGET
annotate [table|view|namespace|schema] PATH EQUATION = set PATH --property EQUATION
label|classify [table|view|namespace|schema] PATH EQUATION = set PATH --tag EQUATION_KEY | values of tags are set in the console and over Gravitino REST: {command} attaches the tag without one, 'limnos set PATH --property EQUATION' keeps a property
du+ = list users
dp|z = access holders
dp|z PATH = access holders PATH
comment on column DEEP is TEXT = set DEEP --column DEEP_LAST=TEXT | DEEP_TYPED is a column: its description is an option of the table
attach [database] FILE as NAME = create catalog NAME | a file of a database, such as FILE, is attached by its engine; {command} creates a catalog
summarize PATH = show PATH | figures on columns are computed by engines, and by statistics of maintenance; {command} shows the table
copy PATH to FILE = head PATH --output csv --rows 200 | rows are copied by engines; {command} prints some, which a shell writes to FILE
pragma TEXT... = show PATH | {command} shows the columns of a table
set search_path [to|=] [TEXT...] = list | there is no current catalog: paths are whole, as main.raw.nyc
dbt ls|list = pipeline plan PIPELINE_FILE | a pipeline is a file; {command} shows its steps, 'limnos list pipelines' the pipelines of the server
dbt init [NAME] = create pipeline pipeline.yaml | a pipeline is a file; {command} writes a small one to begin with
dbt snapshot = pipeline run PIPELINE_FILE | a step keeps history by its write mode in the file; {command} runs it
dbt debug = whoami | {command} shows the server and your user
docker exec [TEXT...] = sql | {command} is a shell for SQL++; a server in a container is entered by docker itself
git push|pull|fetch|show [TEXT...] = changes | there is no copy to synchronize: every client reads the same state; {command} shows the latest changes
git help, docker help, kubectl explain [TEXT...] = --help
docker run|start [TEXT...] = server start | a container of Limnos is made by docker itself; {command} starts a server here
docker logs [TEXT...] = list nodes | a server writes its log to standard error, which docker keeps; {command} lists the servers
docker build|push|pull|tag|network|system|stats|info [TEXT...] = list nodes | images and networks belong to docker; {command} lists the servers
kubectl top [TEXT...] = list nodes | a server has its metrics at /metrics; {command} lists the servers
.tables [TEXT...] = list tables | .tables is of another shell; {command} lists the tables
.schema = list tables | .schema is of another shell; {command} lists the tables
.schema NAME = show NAME | .schema is of another shell; {command} shows columns
.databases = list catalogs | .databases is of another shell; {command} lists the catalogs
.help|.quit|.exit|.mode [TEXT...] = --help | .help, .quit, .exit and .mode are of another shell
auth users|user list = list users
auth groups|group list = list groups
auth policies|policy|roles|role list = list roles
diff PATH TARGET = show PATH | PATH and TARGET are compared by engines; {command} shows the first
vacuum full PATH = maintenance run PATH --kind expire
desc|describe formatted|extended PATH = show PATH
refresh [table|view] PATH = show PATH | there is no cache to refresh: each answer has the current state
c NAME = list NAME | there is no current catalog: paths are whole, as main.raw.nyc
dbt deps = pipeline shipped | a pipeline has no packages to install; {command} lists pipelines to copy
dbt retry = pipeline resume last
dbt run-operation [TEXT...] = sql | there are no macros: statements are run by {command}
dbt show [TEXT...] = head PATH | rows of a published table are shown by {command}
polaris setup [TEXT...] = server config
git reset [TEXT...] = list | there are no commits: engines roll a table back to a snapshot; {command} lists the catalogs
git remote [TEXT...] = list profiles | a server with a session is a profile
git ls-files [TEXT...] = list tables
kubectl cluster-info|drain|port-forward|scale|cordon [TEXT...] = list nodes | servers are started and stopped where they run; {command} lists them
lakectl show commit [TEXT...] = changes | {command} shows the latest changes
show current schema|database|catalog|namespace = list | there is no current catalog: paths are whole, as main.raw.nyc
call TEXT... = list operations CATALOG | procedures on tables are maintenance here, 'limnos maintenance run PATH --kind KIND'; {command} lists its operations
timing|encoding|copyright = sql | that is a command of another shell; {command} has its own
dbt source list = pipeline plan PIPELINE_FILE | sources are in the pipeline's file; {command} shows what its steps read
auth users|user create = create user NAME
auth users|user create NAME = create user NAME
auth groups|group create = create group NAME
auth groups|group create NAME = create group NAME
nessie diff [TEXT...] = changes | branches of tables are made by engines; {command} shows the latest changes
conninfo = whoami
analyze table PATH [TEXT...] = maintenance run PATH --kind statistics
vacuum PATH retain [TEXT...] = maintenance run PATH --kind expire
from PATH = head PATH
dbt compile = pipeline plan PIPELINE_FILE
docker compose up = server start | containers are started by docker itself; {command} starts a server here
docker rmi|top [TEXT...], docker compose logs|ps|down [TEXT...] = list nodes | containers and images belong to docker; {command} lists the servers
fs ls STORE = list | files of a store are listed by its own tools, and those of a fileset by 'limnos files'; {command} lists the catalogs
create schema|namespace|database PATH authorization NAME = create namespace PATH | the owner is set afterwards: 'limnos set owner PATH NAME'
alter role NAME with TEXT... = show role NAME | a role has privileges, and no attributes; {command} shows them
di|di+ = list tables
git status = changes | there is no working copy: {command} shows the latest changes
label|classify|annotate PATH NAME, label|classify NAME PATH = set PATH --tag NAME
untag|unlabel PATH NAME, untag|unlabel NAME PATH = set PATH --untag NAME
pg_dump|mysqldump [NAME] = server backup FILE | an SQLite store is copied by {command}, PostgreSQL's by its own pg_dump
scale [TEXT...] = list nodes | a node is added by 'limnos server start' with the same PostgreSQL database; {command} lists the nodes
pipeline compile|debug|parse|render FILE = pipeline plan FILE
pipeline backfill FILE = pipeline run FILE --backfill NAME=FIRST..LAST
pipeline logs|log|history FILE = list runs | runs are listed for FILE and the others: 'limnos show run RUN' has the steps and findings of one
audit PATH, audit table|view|of|for|on PATH = audit --path PATH
audit user USER, audit of|for|by user USER = audit --who USER
drop schema|namespace|database|catalog PLACE cascade = delete PLACE -r
drop table|view PATH cascade = delete PATH
rename namespace|schema|database|table|view|fileset|model PATH to TARGET, rename PATH to TARGET = rename PATH TARGET
rename catalog|metalake|tag KIND_NAME to NEW = rename KIND_NAME NEW
token rotate|renew|refresh = create token | a token is not renewed: create another one, and revoke the former by 'limnos delete token ID'
token show|describe|info = list tokens | the secret of a token is shown once; {command} lists your tokens
metrics, server metrics = list nodes | the server has its metrics at /metrics, for Prometheus; {command} lists its nodes
status, ping, health, healthcheck, health check, server status|ping|health = list nodes | {command} asks the running server for its nodes, 'limnos whoami' for your user; 'limnos server check' checks a server before its start
who am i = whoami
download|fetch|pull|get|cat PATH FILE = head PATH --file FILE | files of a fileset are read by its clients (gvfs, S3), and {command} shows the beginning of one
download|fetch|pull PATH = show PATH | rows of a table are written by 'limnos head PATH --output csv', files of a fileset listed by 'limnos files PATH'; a version of a model has the address of its files
put|upload|push FILE PATH, upload|put FILE to PATH = files PATH | files of a fileset, such as FILE, are written by its clients (gvfs, S3); {command} lists them
cp|copy|mv|put|upload LOCAL FOLDER = files FOLDER | files of a fileset, such as LOCAL, are written by its clients (gvfs, S3) to FOLDER_TYPED; {command} lists them
cp|copy|mv|load|import LOCAL PATH = show PATH | files of a fileset are written by its clients (gvfs, S3), rows of a table, such as those of LOCAL, by engines, or by a step with 'load' of a pipeline ('limnos create pipeline FILE.yaml' writes one); {command} shows PATH
lance OBJECT, lance get|head OBJECT = show OBJECT | 'limnos lance' reads directories, and OBJECT is no directory's path: ./OBJECT is; {command} shows the object of the lake
list|get maintenance [of|for] PATH, maintenance list PATH = show maintenance PATH
create|link|register|add version|versions|model-version|modelversion|model_version [of|for] PATH [URI], create|link|register|add model version [of|for] PATH [URI], link|link-version PATH [URI] = show PATH | versions of a model are linked by limnos.client (models.link) and Gravitino's clients (link_model_version); {command} shows the model and its versions
delete|unlink|drop|remove version|versions|model-version|modelversion|model_version [of|for] PATH [URI], delete|unlink|drop|remove PATH version NUMBER = show PATH | versions of a model are deleted by Gravitino's clients (delete_model_version); {command} shows the model and its versions
alias|aliases PATH [TEXT...], set|create|add alias|aliases [of|for] PATH [TEXT...] = show PATH | aliases of a model's versions are set by limnos.client (models.set_aliases) and Gravitino's clients; {command} shows the versions with theirs
load_dataset|load_table|read_table|open_table|load_model|read_parquet|read_csv|scan PATH = show PATH | functions of clients in Python are no commands; {command} shows the object
load_dataset|load_table|read_table|open_table|load_model|read_parquet|read_csv|scan SLASHED = find SLASHED | functions of clients in Python are no commands; {command} searches the name in SLASHED_TYPED
vectors|vector|embeddings|embedding|nearest|knn|similar PATH = show PATH | vectors are read and searched by LanceDB's clients; {command} shows the columns of the table
cp|copy|get|put SOURCE GVFS, cp|copy|get|put GVFS SOURCE = files CATALOG.NAMESPACE.FILESET | files of a fileset are copied by its clients, such as Hadoop's with the file system gvfs; {command} lists them
model|models register PATH, register model PATH = create model PATH
model|models register NAME, register model NAME = create model CATALOG.NAMESPACE.NAME
list access requests, access requests = list requests
list|show versions|version [of|for] PATH, versions PATH = show PATH | {command} has the versions of a model; 'limnos list snapshots PATH' has the states of a table
mlflow ui|server|gui = console | experiments belong to MLflow; {command} opens the console of the lake, which has models with their versions
mlflow runs|run [TEXT...] = list runs | experiments belong to MLflow; {command} lists the runs of pipelines
mlflow artifacts|artifact [TEXT...] = list models | artifacts lie where a version of a model points to: {command} lists the models, and 'limnos show MODEL' has each version with its address
mlflow models|model [TEXT...] = list models | models are served by MLflow; {command} lists the registered ones
mlflow [TEXT...] = list models | experiments belong to MLflow; {command} lists the registered models
history|log|logs|changelog NAMESPACE, show|list history|log [of|for] NAMESPACE = audit --path NAMESPACE | {command} has who changed what in it, as far as you may read the audit; a table directly in a catalog of Lance tables has versions: 'limnos list snapshots NAMESPACE'
history PLAIN = audit --path PLAIN | {command} has who changed what in it, as far as you may read the audit
history|log|logs|versions PATH, show|list history|log|versions [of|for] PATH, show snapshots [of|for] PATH = list snapshots PATH | {command} has the states of a table that can be read; 'limnos audit --path PATH' has who changed it, as far as you may read the audit
config get|show|list|view [KEY], get config [KEY] = server config | {command} lists the settings of a server on this machine, with the place where each is set
top = list nodes | {command} lists the server's nodes; 'limnos list runs' has the runs of pipelines, 'limnos head TABLE' a table's first rows
audit log|logs|trail|list|show = audit
create|add index|indexes [on] PATH [TEXT...], index|reindex create|add|build [on] PATH [TEXT...] = show PATH | indexes of datasets are made by CREATE INDEX of SQL++ ('limnos sql'), those of Lance tables by LanceDB's clients and by steps of pipelines; {command} shows the object
create index [NAME] = sql | indexes of datasets are made by CREATE INDEX of SQL++, in {command}; those of Lance tables by LanceDB
create index [NAME] on PATH = sql | indexes of datasets are made by CREATE INDEX of SQL++, in {command}; if PATH is a Lance table, by LanceDB
drop index [NAME] = sql | indexes of datasets are dropped by DROP INDEX of SQL++, in {command}; a catalog of this name by 'limnos delete index'
owner list|ls = list -l | an object has one owner: {command} lists the owners of catalogs, 'limnos show owner PATH' shows one
get rolebindings|rolebinding|clusterrolebindings = list roles | roles are given to users and groups: {command} lists them, 'limnos show role ROLE' has one
diff PATH, diff table PATH = show PATH | two snapshots of a table are compared in the console and by engines; 'limnos audit --path PATH' has who changed it, as far as you may read the audit
purge PATH, purge table PATH = delete PATH --purge | {command} deletes a table with its files; what is in the trash already by 'limnos delete trash'
branch|checkout|commit|merge|stash = list | branches of tables, and commits to them, are made by engines; a pipeline has environments by --env; {command} lists the catalogs
msck [repair] table PATH, repair table PATH, msck repair PATH = table check PATH | partitions need no repair; {command} compares the files and the metadata of a table
sync|pull|push|fetch = changes | there is no copy to synchronize: every client reads the same state; {command} shows the latest changes
test|check connection, connection test|check = whoami | {command} asks the server who you are; 'limnos storage check CATALOG' checks the storage of a catalog
logs = list runs | a server writes its log to standard error; runs and jobs have logs of their own: 'limnos show run RUN', 'limnos show job JOB'
kill|stop|abort RUN, kill|stop|abort run RUN = pipeline cancel RUN | {command} cancels a run of a pipeline; a job is cancelled by 'limnos job cancel'
retry|rerun RUN, retry|rerun run RUN = pipeline resume RUN
backfill FILE = pipeline run FILE --backfill NAME=FIRST..LAST
clone|cp|copy PATH, clone|cp|copy table PATH = show PATH | tables are copied by engines, as by CREATE TABLE … AS SELECT; {command} shows the table's columns
clone|cp|copy PATH TARGET, clone|cp|copy table PATH [to] TARGET = show PATH | tables are copied by engines, as by 'create table TARGET as select * from PATH'; {command} shows the columns
stats|statistics PATH = show PATH | rows, size and snapshots of a table are in {command}
du|size|disk|count|wc|nrows OBJECT = show OBJECT | rows, size and snapshots of a table are in {command}; 'limnos list -l' has those of all in a namespace
list|show branches|branch|aliases|alias [of|for|on] PATH = show PATH | branches of tables and aliases of models are on the console's page of the object; {command} shows it
connect PATH = console | the page of PATH in the console has the settings for each client, on its tab Connect; the documentation's page Clients and engines has more
promote PATH [TEXT...] = show PATH | aliases of a model's versions are set by limnos.client (models.set_aliases) and Gravitino's clients; a run of a pipeline is published by 'limnos pipeline publish RUN'
query = sql | {command} is the shell of SQL++; 'limnos ask' queries the tables about the lake
use [catalog|schema|database] NAME = list NAME | there is no current catalog: paths are whole, as main.raw.nyc; another metalake is chosen by --metalake or LIMNOS_METALAKE
cd = list | there is no current directory: paths begin with a catalog
explain ACTION PATH = access explain ACTION PATH
explain USER PATH = access explain table_read PATH --for USER
explain table|view PATH = show PATH
who PATH = access who PATH
who used|uses|read|reads|queried|queries PATH, usage PATH = audit --path PATH --action read | {command} has the recorded reads: those of the console and 'limnos head' always, those of engines if the server's setting audit.reads is on
who changed|wrote|writes|modified|edited PATH = audit --path PATH --action change | {command} has the changes and who made them
who = access who PATH | {command} has who may do what on an object; 'limnos list users' lists the users, 'limnos whoami' names yours
who PLAIN = access what PLAIN
audit refused|denied|forbidden USER = audit --who USER --outcome refused
audit refused|denied|forbidden = audit --outcome refused
comment on table|view|schema|namespace|database PATH is TEXT = set PATH --comment TEXT
permission|permissions|grants update|set|edit|change [catalog|schema|table|view|volume] NAME = grant PRIVILEGE --on NAME --to ROLE | privileges are granted one by one: {command}, and 'limnos revoke' takes one
[auth] can-i get|list|watch|create|update|delete|patch NAME = access explain ACTION PATH | {command} explains one action, such as table_read; 'limnos access explain --actions' lists them, and 'limnos access what USER' has all that a user may do
"""
_FORMS: Final = {
    "PATH": re.compile(r".*[.`].*"),
    "TARGET": re.compile(r".*[.`].*"),
    "FILE": re.compile(r".*[./].*"),
    "DATABASE": re.compile(r".*\.(?:db|sqlite3?|bak|backup)"),
    "GVFS": re.compile(r"gvfs://.*"),
    "STORE": re.compile(r"(?:s3|gs|abfss?|file|hdfs|dbfs)://?.*"),
    "LOCAL": re.compile(
        r"(?:~|\.{1,2})?/.*|[^.`/:]+\.(?:avro|bin|csv|gz|h5|ipynb|jpe?g|jsonl?|npy|onnx|orc|parquet|pdf|pkl|png|pt"
        r"|py|safetensors|tar|tgz|tsv|txt|xlsx|ya?ml|zip)"
    ),
    "FOLDER": re.compile(r"[^/:.`]+(?:\.[^/:.`]+){2,}/.*"),
    "STAGE": re.compile(r"@.+"),
    "REVISION": re.compile(r"HEAD.*|.*[~^][0-9]*"),
    "STAGED": re.compile(r".+"),
    "DEEP": re.compile(r"[^./`]+(?:\.[^./`]+){3,}"),
    "NAMESPACE": re.compile(r"[^./`]+\.[^./`]+"),
    "PRIVILEGE": re.compile("|".join(PRIVILEGE_ACTIONS)),
    "PLAIN": re.compile(r"[^\W\d][\w-]*"),
    "URL": re.compile(r"https?://.*"),
    "YAML": re.compile(r"\S+\.ya?ml"),
    "RUN_PATH": re.compile(r"run/[0-9a-f-]+"),
    "JOB_PATH": re.compile(r"job/[0-9a-f-]+"),
    "SECRET": re.compile(r".+"),
    "MAIN": re.compile(r"main(?:\.[^./`]+){2,}"),
    "ROOTED": re.compile(r"/.*"),
    "LANCE": re.compile(r"lance(?:\.[^./`]+){2,}"),
    "OBJECT": re.compile(r"[^./`]+(?:\.[^./`]+){2,}(?<!\.lance)"),
    "SLASHED": re.compile(r"[^/:.]+/[^/:.]+"),
    "URI": re.compile(r".+"),
    "WORD": re.compile(r"[^.`]+"),
    "EQUATION": re.compile(r"\w+=.+"),
    "NUMBER": re.compile(r"[0-9]+"),
    "RUN": re.compile(r"[0-9a-f]*[0-9][0-9a-f-]*"),
    "ACTION": re.compile(r"[a-z]+(?:_[a-z]+)+"),
    "SENTENCE": re.compile(r".*\s.*", re.DOTALL),
}
"""The form of some arguments."""
_VALUES: Final[Mapping[str, Callable[[str], str]]] = {
    "FOLDER": lambda text: text.partition("/")[0],
    "DEEP": lambda text: text.rpartition(".")[0],
    "RUN_PATH": lambda text: text.partition("/")[2],
    "JOB_PATH": lambda text: text.partition("/")[2],
    "PRIVILEGE": PRIVILEGE_ACTIONS.__getitem__,
    "SLASHED": lambda text: text.rpartition("/")[2],
}
"""The part of some arguments that a command has, or the word that it has instead."""
_PARTS: Final[Mapping[str, Callable[[str], str]]] = {
    "FOLDER_REST": lambda text: text.partition("/")[2],
    "DEEP_LAST": lambda text: text.rpartition(".")[2],
    "OBJECT_CATALOG": lambda text: text.partition(".")[0],
    "OBJECT_BELOW": lambda text: text.partition(".")[2],
    "MAIN_ROWS": lambda text: f"{with_datasets(f'SELECT VALUE s FROM {text}')} AS s;",  # noqa: S608 - proposed, not run
    "OBJECT_LAST": lambda text: text.rpartition(".")[2],
    "EQUATION_KEY": lambda text: text.partition("=")[0],
}
"""Other parts of arguments."""
_NO_NAMES: Final = frozenset(
    [
        "user",
        "group",
        "role",
        "table",
        "view",
        "schema",
        "namespace",
        "catalog",
        "tag",
        "policy",
        "token",
        "secret",
        "to",
        "from",
        "on",
        "of",
        "in",
        "by",
        "access",
    ]
)
"""Words that are no name where a line has one, so that no command is about an object called `role`."""
_ARGUMENT: Final = re.compile(r"[A-Z]+(?:_[A-Z]+)*")
_EXPANDED: Final = re.compile(r'["$`!\\]')
"""Characters that a shell does not leave alone in double quotes."""
_LISTS: Final = {
    "show tables": "tables",
    "show views": "views",
    "show databases": "namespaces",
    "show schemas": "namespaces",
    "show catalogs": "catalogs",
}
"""Statements of other tools that list objects, and the kinds as `list` has them."""
_STATEMENTS: Final = frozenset({"query", "sql", "exec", "execute", "run"})
"""Words before a statement."""
_CALLER: Final = re.compile(r"\s*select\s+(?:current_user|session_user|user)(?:\s*\(\s*\))?\s*;?\s*", re.IGNORECASE)
_PROFILED: Final = re.compile(r"\s*explain\s+(?:analyze|analyse|extended)\s+", re.IGNORECASE)
_READS: Final = re.compile(r"\s*(?:explain\s+)?(?:select|with|values)\s.*", re.IGNORECASE | re.DOTALL)
_NAMES_ONLY: Final = re.compile(r"\s*select\s+[\w`]+(?:\.[\w`]+)+\s*;?\s*", re.IGNORECASE)
"""The name of a table where a statement has columns."""
_WRITES: Final = re.compile(
    r"\s*(?:(?:insert|upsert)\s+into\s+\S+\s+.*|update\s.*\sset\s.*|delete\s+from\s.*)", re.IGNORECASE | re.DOTALL
)
_FROM: Final = re.compile(
    r"(?<![\w`'\"])(from|join|into|update)(\s+)((?:\w+|`[^`]+`)(?:\.(?:\w+|`[^`]+`))+)", re.IGNORECASE
)
_LANCE_PREFIX: Final = "lance."
"""The beginning of paths in the catalog of Lance tables that a new server has. SQL++ reads none of them."""
_SQLPP_CATALOG: Final = "main"
"""The catalog whose namespaces are dataverses, by default: names in statements begin below it."""


class Proposal(NamedTuple):
    """A command to type, a sentence about what was typed, and what follows the command in the hint; empty without."""

    command: tuple[str, ...]
    note: str
    more: str = ""


class _Line(NamedTuple):
    words: tuple[str, ...]
    command: tuple[str, ...]
    note: str


def proposal_for(words: Sequence[str]) -> Proposal | None:
    """Return the command for a whole line of words, without its flags; None if no line has them."""
    if (statement := _statement(words)) is not None:
        return statement
    for line in _lines():
        values: dict[str, str] = {}
        if _matches(line.words, words, values=values):
            return Proposal(
                tuple(_fill_arguments(word, values) for word in line.command),
                _fill_arguments(line.note, {name: shlex.quote(value) for name, value in values.items()}),
            )
    return None


def _fill_arguments(text: str, values: dict[str, str]) -> str:
    return _ARGUMENT.sub(lambda match: values.get(match[0], match[0]), text)


@functools.cache
def _lines() -> tuple[_Line, ...]:
    """Return the lines of the table, in its order, without those for commands of rooms that are not installed."""
    lines: list[_Line] = []
    for row in _LINES.strip().splitlines():
        typed, _, meant = row.partition(" = ")
        command, _, note = meant.partition(" | ")
        if is_installed(command.split()):
            note = with_command(note, command)
            lines += [_Line(tuple(line.split()), tuple(command.split()), note) for line in typed.split(", ")]
    return tuple(lines)


def _matches(line: Sequence[str], words: Sequence[str], *, values: dict[str, str]) -> bool:
    """Return whether typed words are a line; `values` then has its arguments."""
    if not line:
        return not words
    first, rest = line[0], line[1:]
    if first.startswith("["):
        return _matches([first[1:-1], *rest], words, values=values) or _matches(rest, words, values=values)
    if not words:
        return False
    if first.endswith("..."):
        values[first.removesuffix("...")] = " ".join(words)
        return True
    if first.isupper():
        form = _FORMS.get(first)
        if form is not None and form.fullmatch(words[0]) is None:
            return False
        if form is None and words[0].lower() in _NO_NAMES:
            return False
        if not _matches(rest, words[1:], values=values):
            return False
        values[first] = _VALUES[first](words[0]) if first in _VALUES else words[0]
        values[f"{first}_TYPED"] = words[0]
        values |= {name: part(words[0]) for name, part in _PARTS.items() if name.rpartition("_")[0] == first}
        return True
    return words[0].lower() in first.split("|") and _matches(rest, words[1:], values=values)


def typed_lines() -> list[list[str]]:
    """Return each line of the table with all of its words and an example for each argument, for tests."""
    examples = {word.upper(): f"one_{word}" for word in _NO_NAMES}
    examples |= {"PATH": "main.raw.t", "TARGET": "main.raw.u", "FILE": "p.yaml", "DATABASE": "lake.db"}
    examples |= {"RUN": "1044", "NUMBER": "7", "EQUATION": "card=hash", "ACTION": "table_read"}
    examples |= {"SENTENCE": "for work", "TEXT...": "work"}
    examples |= {"LOCAL": "data.csv", "FOLDER": "main.raw.f/1", "OBJECT": "lance.shop.items", "SLASHED": "shop/items"}
    examples |= {"GVFS": "gvfs://fileset/main/raw/f", "CATALOG": "finance", "STORE": "s3://bucket/x"}
    examples |= {"MAIN": "main.raw.t", "ROOTED": "/1/a.bin"}
    examples |= {"LANCE": "lance.shop.items", "STAGE": "@stage", "NAMESPACE": "main.sales", "PRIVILEGE": "select_table"}
    examples |= {"REVISION": "HEAD~1", "DEEP": "main.raw.t.c"}
    examples |= {"URL": "http://lake.example:8090", "YAML": "p.yaml"}
    examples |= {"RUN_PATH": "run/1044", "JOB_PATH": "job/77"}
    return [
        [
            examples.get(word.strip("[]"), word.strip("[]").lower())
            if word.isupper()
            else word.strip("[]").partition("|")[0]
            for word in line.words
        ]
        for line in _lines()
    ]


def _statement(words: Sequence[str]) -> Proposal | None:
    """Return the command for a statement, with the names as SQL++ has them; None for other words."""
    if not words:
        return None
    text = " ".join(words[1:] if words[0].lower() in _STATEMENTS and len(words) > 1 else words)
    listed = _LISTS.get(" ".join(text.lower().split()).rstrip("; ")) if words[0].lower() == "sql" else None
    if listed is not None:
        return Proposal(("list", listed), f"SQL++ has no {text.split()[0].upper()}: a command lists {listed}")
    if _CALLER.fullmatch(text) is not None:
        return Proposal(("whoami",), "'limnos whoami' shows the user of a command")
    if words[0].lower() == "count" and len(words) == 2 and "." in words[1] and not words[1].startswith(_LANCE_PREFIX):
        text = f"select count(*) from {words[1]}"  # noqa: S608 - proposed, not run
    text = _PROFILED.sub("explain ", text)
    if words[0].lower() in {"truncate", "empty"} and "." in words[-1] and [*words[1:-1]] in ([], ["table"]):
        return _truncation(words[-1])
    if not is_installed(("sql",)):
        return None
    note = (
        "a statement stands after -c" if words[0].lower() == "sql" else "statements are run by 'limnos sql', in SQL++"
    )
    if _NAMES_ONLY.fullmatch(text) is not None:
        return None
    if (lance := _of_lance_table(text)) is not None:
        return lance
    if _WRITES.fullmatch(text) is not None:
        note = "rows are written by engines and SQL++"
    elif _READS.fullmatch(text) is None:
        return None
    return Proposal(("sql", "-c", f"{with_datasets(text).strip().rstrip(';')};"), note)


def _of_lance_table(text: str) -> Proposal | None:
    """Return the answer to a statement that reads a Lance table, which SQL++ does not; None for other statements."""
    path = next((match[3] for match in _FROM.finditer(text) if match[3].startswith(_LANCE_PREFIX)), None)
    if path is None or _READS.fullmatch(text) is None:
        return None
    note = (
        f"'limnos sql' reads no Lance tables, such as {path}: {quote_command(('head', path))} shows rows,"
        f" {quote_command(('show', path))} their number; LanceDB's clients query them"
    )
    return Proposal(("head", path), note)


def with_datasets(text: str) -> str:
    """Return a statement of SQL with the names of SQL++."""
    return _FROM.sub(_dataset, text)


def _truncation(path: str) -> Proposal:
    """Return the answer to `truncate PATH`: SQL++ deletes rows of its datasets, and only an engine those of a table."""
    statement = f"{_FROM.sub(_dataset, f'delete from {path}')};"  # noqa: S608 - proposed, not run
    deletes = quote_command(("delete", path))
    note = f"rows of a table are deleted by engines, the table itself by {deletes}"
    more = f" shows it; if it is a dataset of SQL++: {quote_command(('sql', '-c', statement))}"
    return Proposal(("show", path), note, more if is_installed(("sql",)) else " shows it")


def _dataset(match: re.Match[str]) -> str:
    """Return FROM or JOIN with a path as SQL++ names a dataset: below the catalog, reserved words in back-quotes."""
    from limnos.names import display
    from limnos.names.errors import InvalidName
    from limnos.names.sqlpp import identifier

    try:
        parts = list(display.parse(match[3]))
    except InvalidName:
        return match[0]
    below = parts[1:] if len(parts) > 2 and parts[0] == _SQLPP_CATALOG else parts
    return f"{match[1]}{match[2]}{'.'.join(map(identifier, below))}"


def quote_command(command: Sequence[str]) -> str:
    """Return a command with the program's name: in quotes, unless it has quotes of the shell itself."""
    text = " ".join(["limnos", *map(quoted_word, command)])
    return text if "'" in text or '"' in text else f"'{text}'"


def quoted_word(word: str) -> str:
    """Return a word as a shell reads it: one with single quotes stands in double quotes, if that changes nothing."""
    return f'"{word}"' if "'" in word and not _EXPANDED.search(word) else shlex.quote(word)
