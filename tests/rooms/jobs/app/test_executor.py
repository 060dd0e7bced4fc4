# SPDX-License-Identifier: Apache-2.0
"""Jobs that a server runs: confined processes with few privileges, ended at their time limit, with the correct final
state.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast
from uuid import uuid4

import pytest

from limnos.config.jobs import JobsSection
from limnos.config.server import ServerSection
from limnos.config.settings import Settings
from limnos.confinement.landlock import version
from limnos.model.errors import CannotStart
from limnos.model.permits import upkeep_permit
from limnos.rooms.jobs.app.executor import BEAT_S, LEASE_MS, JobExecutor, executor_of
from limnos.rooms.jobs.app.job_commands import job_settings_of
from limnos.rooms.jobs.app.job_confinement import job_notes
from limnos.rooms.jobs.app.job_keeper import JobLimits
from tests.http.driver import API, OWN, DriverAnswer, DriverNode, grant, node_at

pytestmark = pytest.mark.slow

TEMPLATES, RUNS = f"{API}/lake/jobs/templates", f"{API}/lake/jobs/runs"
T = TypeVar("T")
WITHIN_S = 600
ABSTRACT_SINCE = 6
"""The version of Landlock that closes abstract sockets."""
INTERPRETER = tuple(str(Path(each).resolve()) for each in (sys.prefix, sys.base_prefix))
SLEEPS = b"1000.20471"
"""An argument by which a process of a test is found."""
ENDED = ("succeeded", "failed", "cancelled")
HOPS = f"""#!{sys.executable}
import os, sys
held = os.open(sys.argv[1], os.O_WRONLY)
for _ in range(40):
    if os.fork() == 0:
        for _ in range(4000):
            os.setsid()
            if os.fork():
                os._exit(0)
        os._exit(0)
"""
"""A program whose processes fork and exit again and again, faster than they can be found. All hold a pipe open."""
ATTACKS = f"""#!{sys.executable}
import json, os, resource, socket, sys
server, data, place, abstract, port = sys.argv[1:]
def attempt(work):
    try:
        return str(work())
    except OSError as error:
        return type(error).__name__
def connect(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as client:
        client.connect(address)
        return "connected"
secret = data + "/admin.token"
own = socket.create_server(("127.0.0.1", 0))
print(json.dumps({{
    "prlimit": attempt(lambda: resource.prlimit(int(server), resource.RLIMIT_NOFILE)),
    "chmod": attempt(lambda: os.chmod(secret, 0o777)),
    "chown": attempt(lambda: os.chown(data, os.getuid(), os.getgid())),
    "utime": attempt(lambda: os.utime(secret, (1, 1))),
    "setxattr": attempt(lambda: os.setxattr(secret, "user.x", b"1")),
    "stat": attempt(lambda: os.stat(secret).st_size),
    "chmod of a program": attempt(lambda: os.chmod(sys.argv[0], 0o777)),
    "socket": attempt(lambda: connect(socket.AF_UNIX, place)),
    "abstract": attempt(lambda: connect(socket.AF_UNIX, chr(0) + abstract)),
    "server": attempt(lambda: connect(socket.AF_INET, ("127.0.0.1", int(port)))),
    "processes": attempt(lambda: len([each for each in os.listdir("/proc") if each.isdigit()])),
    "own": attempt(lambda: connect(socket.AF_INET, own.getsockname())),
}}))
"""
"""A program that reaches for the server's process, files and sockets."""
PROGRAMS = {
    "hello.sh": '#!/bin/sh\necho "hello $1 $MODE"; echo careful >&2; ls; cat part.sh\n',
    "part.sh": "part of it\n",
    "bytes.sh": "#!/bin/sh\nprintf 'a\\000b\\377c'; printf '\\000' >&2\n",
    "fails.sh": "#!/bin/sh\nexit 7\n",
    "sleeps.sh": "#!/bin/sh\ntrap 'echo asked; exit 0' TERM\necho begun\ntouch begun\nwhile :; do sleep 0.05; done\n",
    "deaf.sh": "#!/bin/sh\ntrap '' TERM\nwhile :; do sleep 0.05; done\n",
    "leaves.sh": f"#!/bin/sh\nsetsid sleep {SLEEPS.decode()} >/dev/null 2>&1 &\necho $! $HOME\n",
    "reads.sh": '#!/bin/sh\ncat "$1" 2>&1\ncat /proc/$PPID/environ 2>&1 | head -c 100\nenv\n',
    "writes.sh": '#!/bin/sh\necho x > "$1"\n',
    "long.sh": "#!/bin/sh\ni=0; while [ $i -lt 3000 ]; do echo line-$i; i=$((i+1)); done\n",
    "kills.sh": "#!/bin/sh\nkill -9 $$\n",
    "spins.sh": "#!/bin/sh\nwhile :; do :; done\n",
    "fills.sh": "#!/bin/sh\nhead -c 300000 /dev/zero > filled; wc -c < filled\n",
    "limits.sh": (
        "#!/bin/sh\nulimit -Hd; ulimit -Ht; ulimit -Hf; ulimit -Hc; nice; cat /proc/self/oom_score_adj; readlink"
        " /proc/self/ns/net; id -u\n"
    ),
    "hops.py": HOPS,
    "attacks.py": ATTACKS,
    "eats.sh": "#!/bin/sh\nx=aaaaaaaaaaaaaaaa; while :; do x=$x$x; done\n",
}


@dataclass
class Lake:
    """A node that runs jobs, and the directory of their programs."""

    node: DriverNode
    programs: Path
    settings: Settings

    def executor(self, **more: object) -> JobExecutor:
        """Return an executor of this node."""
        plan = job_settings_of(self.settings)._replace(**more)
        executor = JobExecutor(self.node.built.services, plan, running_max=2)
        self.node.built.services.wake_executor = executor.wake
        return executor

    def register(self, program: str, **more: object) -> DriverAnswer:
        """Register a program under the first part of its file name."""
        template = {"jobType": "shell", "name": program.partition(".")[0], "executable": str(self.programs / program)}
        return self.node.post(TEMPLATES, {"jobTemplate": template | {"comment": None, "audit": None} | more})

    def ask(self, program: str, conf: dict | None = None, **more: object) -> str:
        """Register a program and request a job of it. Returns the job's id."""
        assert self.register(program, **more).status == 200
        answer = self.node.post(RUNS, {"jobTemplateName": program.partition(".")[0], "jobConf": conf})
        assert answer.status == 200, answer
        assert answer.json()["job"]["status"] == "queued"
        return answer.json()["job"]["jobId"]

    def told(self, job: str) -> dict:
        """Return a job as the admin API answers it."""
        return self.node.get(f"{OWN}/metalakes/lake/jobs/{job}").json()

    def run(self, job: str, **more: object) -> dict:
        """Let an executor run until a job has ended. Returns the job."""
        self.node.runner.run(self.work(job, self.executor(**more)))
        return self.told(job)

    async def work(
        self, job: str, executor: JobExecutor, *, until: tuple[str, ...] = ("succeeded", "failed", "cancelled")
    ) -> None:
        """Let an executor run until a job is in one of some states."""
        task = asyncio.create_task(executor.run())
        try:
            await self.reach(job, until)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def settle(self) -> None:
        """Let an executor check the jobs once."""
        await self.executor()._take()

    async def reach(self, job: str, states: tuple[str, ...]) -> None:
        """Wait until a job is in one of some states. Fails if it ends in another one, or in none of them in time."""
        seen = ""
        try:
            async with asyncio.timeout(WITHIN_S):
                while seen not in states:
                    assert seen not in ENDED, f"the job is {seen} and will not be {states}"
                    await asyncio.sleep(0.02)
                    answer = await self.node._ask("GET", f"{RUNS}/{job}", None, "admin", {})
                    seen = answer.json()["job"]["status"]
        except TimeoutError:
            raise AssertionError(f"the job is {seen} and was not {states} within {WITHIN_S} s") from None


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    """A node whose jobs may access the files of one directory."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, text in PROGRAMS.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    jobs = JobsSection(
        confined=False,
        executor="local",
        allowed=(str(programs),),
        environment=("MODE", "LOAD_*"),
        waiting_max=3,
        output_bytes_max=1000,
    )
    settings = Settings(server=ServerSection(data=str(tmp_path / "data")), jobs=jobs)
    with node_at(tmp_path / "data", jobs=jobs) as node:
        yield Lake(node, programs, settings)


def test_a_program_is_run(lake: Lake) -> None:
    """A program gets its arguments, variables and scripts, and nothing of the server's. Its output is stored."""
    job = lake.ask(
        "hello.sh",
        {"who": "{{x}}", "mode": "daily"},
        arguments=["{{who}}"],
        environments={"MODE": "{{mode:-none}}"},
        scripts=[f"file://{lake.programs}/part.sh"],
    )

    ended_job = lake.run(job)

    assert (ended_job["state"], ended_job["exit_code"], ended_job["message"], ended_job["template"]) == (
        "succeeded",
        0,
        None,
        "hello",
    )
    assert ended_job["stdout"] == "hello {{x}} daily\npart.sh\npart of it\n"
    assert (ended_job["stderr"], ended_job["stderr_bytes"]) == ("careful\n", 8)
    job_told = lake.node.get(f"{RUNS}/{job}").json()["job"]
    assert job_told["status"] == "succeeded"
    assert job_told["queuedAt"] <= job_told["startedAt"] <= job_told["finishedAt"]


@pytest.mark.parametrize(
    "program,code,message",
    [("fails.sh", 7, "Ended with exit code 7"), ("kills.sh", -9, "Ended by signal 9")],
)
def test_failed_program_sets_exit_status_of_job(lake: Lake, program: str, code: int, message: str) -> None:
    """The job of a failed program has the exit status."""
    ended_job = lake.run(lake.ask(program))

    assert (ended_job["state"], ended_job["exit_code"], ended_job["message"]) == ("failed", code, message)


def test_program_can_access_only_the_files_of_its_job(lake: Lake) -> None:
    """A program can read and write the files that its job names, not the server's files, and has none of the server's
    variables.
    """
    os.environ["LIMNOS_SECRET_OF_THE_SERVER"] = "no"
    token = lake.node.data / "admin.token"
    token.write_text("very secret")
    outside = lake.programs.parent / "outside"
    outside.write_text("secret too")
    try:
        assert lake.register("reads.sh", arguments=["{{path}}"]).status == 200
        read = [lake.run(request_job(lake, "reads", path=str(path))) for path in (token, outside)]
        assert lake.register("writes.sh", arguments=["{{path}}"]).status == 200
        written = lake.run(request_job(lake, "writes", path=str(lake.programs / "new")))
        own = lake.run(request_job(lake, "writes", path="new"))
    finally:
        del os.environ["LIMNOS_SECRET_OF_THE_SERVER"]

    assert version() == 0 or all(
        "Permission denied" in each["stdout"] and "secret" not in each["stdout"] for each in read
    ), read
    assert all("LIMNOS_SECRET" not in each["stdout"] for each in read)
    assert version() == 0 or (written["state"], (lake.programs / "new").exists()) == ("failed", False)
    assert own["state"] == "succeeded"


def request_job(lake: Lake, template: str, **conf: str) -> str:
    """Request a job of an existing template."""
    answer = lake.node.post(RUNS, {"jobTemplateName": template, "jobConf": conf})
    assert answer.status == 200, answer
    return answer.json()["job"]["jobId"]


def test_only_the_end_of_a_long_output_is_stored(lake: Lake) -> None:
    """Only the end of a long output is stored, with the length of the whole."""
    ended_job = lake.run(lake.ask("long.sh"))

    assert (ended_job["state"], len(ended_job["stdout"])) == ("succeeded", 1000)
    assert ended_job["stdout"].endswith("line-2998\nline-2999\n")
    assert ended_job["stdout_bytes"] == sum(len(f"line-{number}\n") for number in range(3000))


def test_a_job_is_cancelled(lake: Lake) -> None:
    """A running job is ended, a waiting one is cancelled at once, and an ended one does not change."""
    job = lake.ask("sleeps.sh")

    async def story() -> None:
        executor = lake.executor()
        task = asyncio.create_task(executor.run())
        await lake.reach(job, ("started",))
        answer = await lake.node._ask("POST", f"{RUNS}/{job}", None, "admin", {})
        assert answer.json()["job"]["status"] in ("cancelling", "cancelled")
        await lake.reach(job, ("cancelled",))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    lake.node.runner.run(story())
    waits = lake.ask("hello.sh")
    withdrawn = lake.node.post(f"{RUNS}/{waits}").json()["job"]["status"]
    again = lake.node.post(f"{RUNS}/{waits}").json()["job"]["status"]

    assert lake.told(job)["state"] == "cancelled"
    assert (withdrawn, again) == ("cancelled", "cancelled")
    assert lake.told(waits)["message"] == "Cancelled by admin before it started"


@pytest.mark.parametrize("program", ["sleeps.sh", "deaf.sh"])
def test_job_over_its_time_limit_is_ended(lake: Lake, program: str) -> None:
    """A job that exceeds its time limit is ended, whether it reacts to signals or not."""
    ended_job = lake.run(lake.ask(program), timeout_s=0.2, grace_s=0.2)

    assert (ended_job["state"], ended_job["message"]) == (
        "failed",
        "Ended after 0.2 seconds, the limit of jobs.timeout_s",
    )


def test_job_processes_have_limits_and_lower_priority(lake: Lake) -> None:
    """The processes of a job have the limits of the settings and a lower priority than the server. The job's message
    says how they ended.
    """
    limits = JobLimits(memory_bytes=64 << 20, cpu_s=1, file_bytes=8192)
    ended_job = lake.run(lake.ask("limits.sh"), limits=limits)

    bounds = ended_job["stdout"].split()
    assert bounds[:4] == [str((64 << 20) // 1024), "1", "16", "0"]  # kibibytes, seconds, blocks
    assert (int(bounds[4]) >= os.nice(0) + 10 or bounds[4] == "19", bounds[5]) == (True, "1000")
    assert (bounds[6], int(bounds[7])) == (str(Path("/proc/self/ns/net").readlink()), os.geteuid())
    for program, message in (
        ("spins.sh", "Ended by signal 9"),
        ("fills.sh", "8192"),
        ("eats.sh", "Ended"),
    ):
        ended_job = lake.run(lake.ask(program), limits=limits)
        output = f"{ended_job['message']} {ended_job['stdout']}"
        assert message in output, (program, ended_job)
        assert ended_job["state"] == ("succeeded" if program == "fills.sh" else "failed")


def test_job_without_network_runs_in_own_namespace(lake: Lake) -> None:
    """A job without network access runs in a network namespace of its own, with the same user id. If the machine does
    not allow that, the job is not started.
    """
    ended_job = lake.run(lake.ask("limits.sh"), limits=JobLimits(network=False))

    if ended_job["state"] == "succeeded":
        output_words = ended_job["stdout"].split()
        assert output_words[-2].startswith("net:[")
        assert (output_words[-2] != str(Path("/proc/self/ns/net").readlink()), int(output_words[-1])) == (
            True,
            os.geteuid(),
        )
    else:
        assert "jobs.network is off" in ended_job["message"]


def test_every_limit_setting_is_passed_to_the_job(lake: Lake) -> None:
    """Each limit of the settings is passed to the job."""
    jobs = lake.settings.jobs.model_copy(
        update={"memory_bytes_max": 1, "cpu_s_max": 2, "file_bytes_max": 3, "network": False}
    )

    assert job_settings_of(lake.settings.model_copy(update={"jobs": jobs})).limits == JobLimits(1, 2, 3, network=False)
    assert job_settings_of(lake.settings).limits == JobLimits()


def test_processes_and_directory_of_ended_job_are_removed(lake: Lake) -> None:
    """After a job no process of it remains, also in its own sessions, and its directory is deleted."""
    ended_job = lake.run(lake.ask("leaves.sh"))

    assert ended_job["state"] == "succeeded"
    _, home = ended_job["stdout"].split()
    assert not [each for each in Path("/proc").glob("[0-9]*/cmdline") if SLEEPS in _text(each)]
    assert not Path(home).exists()


def _text(path: Path) -> bytes:
    with suppress(OSError):  # the process has ended
        return path.read_bytes()
    return b""


def test_process_that_forks_and_exits_does_not_outlive_its_job(lake: Lake, tmp_path: Path) -> None:
    """A process that always hides in a new child is killed with its job: nobody holds the pipe any more."""
    place = tmp_path / "place"
    place.mkdir()
    os.mkfifo(place / "pipe")
    reader = os.open(place / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    job = lake.ask("hops.py", arguments=[str(place / "pipe")])

    ended_job = lake.run(job, must_be_confined=True, writable=(str(place),), readable=INTERPRETER)

    assert ended_job["state"] == "succeeded", ended_job
    assert os.read(reader, 1) == b"", "a process still has the pipe"
    os.close(reader)


@pytest.mark.parametrize("network", [True, False])
def test_job_cannot_reach_process_files_and_sockets_of_server(lake: Lake, tmp_path: Path, network: bool) -> None:
    """A job can neither change limits of the server, nor see or change attributes of its files, nor connect to sockets
    by path or abstract name. Without network it cannot reach the server, but its own loopback interface.
    """
    (lake.node.data / "admin.token").write_text("very secret")
    with ExitStack() as stack:
        names = (str(tmp_path / "s"), f"\0limnos-{uuid4().hex}")
        for name in names:
            listener = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            listener.bind(name)
            listener.listen()
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        arguments = [str(os.getpid()), str(lake.node.data), names[0], names[1][1:], str(server.getsockname()[1])]
        job = lake.ask("attacks.py", arguments=arguments)
        limits = JobLimits(network=network)
        ended_job = lake.run(job, must_be_confined=True, limits=limits, readable=INTERPRETER)

    assert ended_job["state"] == "succeeded", ended_job
    outcomes = json.loads(ended_job["stdout"])
    assert outcomes.pop("server") == ("connected" if network else "ConnectionRefusedError")
    assert outcomes.pop("own") == "connected"
    assert outcomes.pop("processes") == "2"
    assert outcomes.pop("prlimit") in ("ProcessLookupError", "PermissionError")
    assert outcomes.pop("chmod of a program") == "OSError", "the file system is read-only"
    if version() >= ABSTRACT_SINCE or not network:
        assert outcomes.pop("abstract") in ("PermissionError", "ConnectionRefusedError")
    missing = ("chmod", "chown", "utime", "setxattr", "stat", "socket")
    assert {name: outcomes[name] for name in missing} == dict.fromkeys(missing, "FileNotFoundError")


def test_a_server_that_stops_ends_its_jobs(lake: Lake) -> None:
    """When the server stops, its running jobs fail and waiting ones keep waiting."""
    job = lake.ask("sleeps.sh")
    lake.node.runner.run(lake.work(job, lake.executor(), until=("started",)))
    stored_job = lake.told(job)

    assert (stored_job["state"], "stopped" in str(stored_job["message"])) == ("failed", True)


def test_job_of_killed_server_is_marked_as_failed(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job of a killed server is shown as failed when its lease has expired, and the next server marks it as failed.
    It is not started again.
    """
    job = lake.ask("sleeps.sh")
    store = lake.node.built.services.store
    lake.node.runner.run(
        store.submit(upkeep_permit("t"), lambda tx: tx.template_jobs.claim("gone", limit=1, lease_ms=0))
    )
    reported_status = lake.node.get(f"{RUNS}/{job}").json()["job"]["status"]
    busy = lake.node.delete(f"{TEMPLATES}/sleeps")

    lake.node.runner.run(lake.settle())
    stored_job = lake.told(job)

    assert reported_status == "failed"
    assert (busy.status, busy["type"]) == (409, "InUseException")
    assert (stored_job["state"], "stopped responding" in str(stored_job["message"])) == ("failed", True)
    assert lake.node.delete(f"{TEMPLATES}/sleeps").json()["dropped"] is True


REFUSED = [
    ({"executable": "/bin/sh"}, {}, "jobs.allowed"),
    ({"executable": "{{x}}"}, {"x": "/bin/sh"}, "jobs.allowed"),
    ({"executable": "{{dir}}/../../bin/sh"}, {"dir": "PROGRAMS"}, "jobs.allowed"),
    ({"executable": "https://example.com/x.sh"}, {}, "not a file on the server's machine"),
    ({"executable": "hello.sh"}, {}, "not an absolute path"),
    ({"arguments": ["{{day}} {{hour}}"]}, {}, "day, hour"),
    ({"arguments": ["{{day}}"]}, {"day": "a\0b"}, "zero byte"),
    ({"environments": {"LD_PRELOAD": "/x.so"}}, {}, "jobs.environment"),
    ({"environments": {"LOAD_{{x}}": "1", "LOAD_a": "2"}}, {"x": "a"}, "become equal"),
    ({"scripts": ["PROGRAMS/part.sh", "PROGRAMS/../programs/part.sh"]}, {}, "same name"),
]
"""Fields of a template, values of its parameters, and the expected words of the refusal. PROGRAMS stands for the
allowed directory.
"""


def test_disallowed_job_is_refused_at_request(lake: Lake) -> None:
    """A job that is not allowed to run is refused at the request, with the remedy."""
    for number, (fields, conf, words) in enumerate(REFUSED):
        assert lake.register("hello.sh", **_placed(fields | {"name": f"t{number}"}, lake.programs)).status == 200
        answer = lake.node.post(RUNS, {"jobTemplateName": f"t{number}", "jobConf": _placed(conf, lake.programs)})

        assert (answer.status, answer["code"]) == (400, 1001), fields
        assert words in str(answer["message"])


def _placed(value: T, programs: Path) -> T:
    resolved_value: object = value
    if isinstance(value, str):
        resolved_value = value.replace("PROGRAMS", str(programs))
    elif isinstance(value, list):
        resolved_value = [_placed(each, programs) for each in value]
    elif isinstance(value, dict):
        resolved_value = {key: _placed(each, programs) for key, each in value.items()}
    return cast("T", resolved_value)


def test_a_link_that_leads_out_is_not_followed(lake: Lake) -> None:
    """A link that leads out of the allowed directory, and a missing file, are not executed."""
    (lake.programs / "link.sh").symlink_to("/bin/sh")
    linked = lake.run(lake.ask("link.sh"))
    absent = lake.run(lake.ask("none.sh"))

    assert (linked["state"], "outside of the locations" in str(linked["message"])) == ("failed", True)
    assert (absent["state"], "There is no file" in str(absent["message"])) == ("failed", True)


def test_number_of_jobs_per_user_is_limited(lake: Lake) -> None:
    """The number of waiting and running jobs of a user is limited, and other users' jobs are not affected."""
    lake.ask("hello.sh")
    answers = [lake.node.post(RUNS, {"jobTemplateName": "hello"}) for _ in range(3)]
    grant(lake.node, "ann", "use_job_template run_job", kind="metalake", on="lake")
    other = lake.node.post(RUNS, {"jobTemplateName": "hello"}, user="ann")

    assert [each.status for each in answers] == [200, 200, 503]
    assert answers[2].headers["retry-after"] == "10"
    assert other.status == 200


def test_job_is_visible_only_to_owners(lake: Lake) -> None:
    """A job is visible to its owner and the owners of its template and metalake. Other callers cannot learn whether it
    exists.
    """
    lake.ask("hello.sh")
    for user in ("ann", "bob"):
        grant(lake.node, user, "use_job_template run_job", kind="metalake", on="lake")
    job = lake.node.post(RUNS, {"jobTemplateName": "hello"}, user="ann").json()["job"]["jobId"]
    job_path = f"{OWN}/metalakes/lake/jobs/{job}"

    def seen(user: str) -> tuple[int, ...]:
        return tuple(
            lake.node.ask(method, path, user=user).status
            for method, path in (("GET", f"{RUNS}/{job}"), ("GET", job_path), ("POST", f"{RUNS}/{job}"))
        )

    listed = {user: len(lake.node.get(RUNS, user=user).json()["jobs"]) for user in ("admin", "ann", "bob")}
    assert listed == {"admin": 2, "ann": 1, "bob": 0}
    assert [len(lake.node.get(f"{RUNS}?jobTemplateName=hello", user=user).json()["jobs"]) for user in listed] == [
        2,
        1,
        0,
    ]
    assert (seen("bob"), seen("ann"), seen("admin")) == ((403,) * 3, (200,) * 3, (200,) * 3)


def test_jobs_run_as_another_user_only_for_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lake: Lake) -> None:
    """A server that is to run jobs as another user must run as root. Otherwise it does not start, and says why."""
    settings = Settings(server=ServerSection(data=str(tmp_path)), jobs=JobsSection(executor="local", user="nobody"))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    with pytest.raises(CannotStart, match="nobody"):
        executor_of(settings, lake.node.built.services)
    assert executor_of(Settings(), lake.node.built.services) is None


def test_new_jobs_are_refused_if_the_machine_cannot_confine_them(lake: Lake) -> None:
    """A node whose machine cannot confine jobs refuses new ones, and its health says so, unless the settings allow jobs
    without confinement.
    """
    assert lake.register("hello.sh").status == 200
    services = lake.node.built.services
    missing = Settings(
        server=lake.settings.server, jobs=JobsSection(executor="local", allowed=("/srv",), user="no-such-user")
    )
    trusting = missing.model_copy(update={"jobs": missing.jobs.model_copy(update={"confined": False})})
    assert "jobs" not in [each["name"] for each in lake.node.get("/health").json()["checks"]]

    if os.geteuid() == 0:
        executor_of(missing, services)
        refused = lake.node.post(RUNS, {"jobTemplateName": "hello"})
        health = lake.node.get("/health")
        assert (refused.status, "cannot confine them" in str(refused["message"])) == (405, True), refused
        assert health.status == 200
        assert "jobs" in [each["name"] for each in health.json()["checks"]]
        assert "no-such-user" not in str(health.json()), "health is public"
    assert [("no-such-user" in each, "jobs.confined" in each) for each in job_notes(missing)] == [(True, True)]
    assert job_notes(trusting) == job_notes(Settings()) == []
    assert job_notes(lake.settings.model_copy(update={"jobs": missing.jobs.model_copy(update={"user": None})})) == []


def test_unstorable_bytes_of_output_are_replaced(lake: Lake) -> None:
    """Bytes of the outputs that no store can keep as text are replaced."""
    ended_job = lake.run(lake.ask("bytes.sh"))

    assert (ended_job["state"], ended_job["stdout"], ended_job["stderr"]) == ("succeeded", "a\ufffdb\ufffdc", "\ufffd")


def test_lease_is_renewed_after_at_most_a_third_of_its_time() -> None:
    """A job's lease survives two missed heartbeats."""
    assert BEAT_S * 1000 * 3 <= LEASE_MS
