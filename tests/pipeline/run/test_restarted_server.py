# SPDX-License-Identifier: Apache-2.0
"""A server that is killed during a run and restarted: the run waits for it, and nothing fails."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from limnos.client import Client
from limnos.model.errors import ServiceUnavailable
from limnos.pipeline.context import StepContext
from limnos.pipeline.declaration import Pipeline, StepDeclaration
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.failures import StepAway
from tests.integration.live import LIMNOS, serving
from tests.pipeline.run.conftest import FakeEngine, PipelineRig

pytestmark = pytest.mark.integration


def test_run_start_waits_for_unavailable_server(rig: PipelineRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """If Spark cannot reach the server at the start of a run, the request is repeated; after the longest wait the error
    has no text of Java.
    """
    failures = [StepAway("connection refused")] * 2
    reads = rig.engine.reads

    def away(pipeline: Pipeline) -> Mapping[str, frozenset[Parts]]:
        if failures:
            raise failures.pop()
        return reads(pipeline)

    monkeypatch.setattr(rig.engine, "reads", away)

    ended = rig.run(rig.pipeline(a=""))
    failures += [StepAway("connection refused")]

    assert ended.state == "published", ended.message
    with pytest.raises(ServiceUnavailable, match="Spark does not reach the server: connection refused"):
        rig.run(rig.pipeline(a=""), away_s=0)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_run_publishes_once_after_server_kill_and_restart(tmp_path: Path, moment: str) -> None:
    """If the server is killed before a step writes or after it wrote, the run waits, repeats that step, and publishes
    once.
    """
    again: list[subprocess.Popen[bytes]] = []
    with serving(tmp_path / "data") as first, Client(first.uri, token=first.token) as client:
        address = first.uri.removeprefix("http://")
        command = [*LIMNOS, "server", "start", "--data", str(tmp_path / "data"), "--listen", address]
        client.namespaces.create("main.s")

        def restart() -> None:
            again.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

        def killed(step: StepDeclaration, context: StepContext) -> None:
            if step.table[-1] == "b" and first.process.poll() is None:
                first.process.kill()
                first.process.wait()
                threading.Timer(1.0, restart).start()
                raise StepAway("connection refused")

        engine = FakeEngine(client=client)
        setattr(engine, moment, killed)
        with Client(first.uri, token=first.token) as heartbeat_client:
            rig = PipelineRig(client=client, heartbeat_client=heartbeat_client, space="s", engine=engine)
            try:
                ended = rig.run(rig.pipeline(a="", b="a", c="b"), lease_s=30)

                assert ended.state == "published", ended.message
                assert [name[-1] for name, _ in engine.carried] == ["a", "b", "b", "c"]
                assert [rig.refs(name) for name in "abc"] == [{"main"}] * 3
            finally:
                for process in again:
                    process.terminate()
                    process.wait(timeout=300)
