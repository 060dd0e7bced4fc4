# SPDX-License-Identifier: Apache-2.0
"""A fake engine without Spark: a job's target selects its behavior. It starts and communicates like the real engine."""

from __future__ import annotations

import os
import socket
import threading
import time
from pathlib import Path

import msgspec

from limnos.rooms.sqlpp.engine import wire
from limnos.rooms.sqlpp.language.jobs import decode


def serve(own: socket.socket) -> None:
    """Answer one job."""
    kind, body = wire.receive(own)
    if kind == wire.PING:
        own.sendall(wire.encode_frame(wire.DONE))
        own.close()
        return
    job = decode(body)
    if job.id == "die":
        os._exit(3)
    if job.id.startswith("rows"):
        for at in range(int(job.id.split()[1])):
            own.sendall(wire.encode_frame(wire.ROWS, f'{{"at":{at}}}\n"x"\n'.encode()))
    if job.id == "refuse":
        failure = wire.JobFailure(number=1077, message="Cannot find dataset", line=2, column=5)
        own.sendall(wire.encode_frame(wire.FAILED, msgspec.msgpack.encode(failure)))
    elif job.id == "unstarted":
        failure = wire.JobFailure(number=3109, message="The engine could not be started: no Java", again=True)
        own.sendall(wire.encode_frame(wire.FAILED, msgspec.msgpack.encode(failure)))
    elif job.id == "unforeseen":
        own.sendall(
            wire.encode_frame(
                wire.FAILED, msgspec.msgpack.encode(wire.JobFailure(number=3102, message="odd", failed=True))
            )
        )
    elif job.id == "damaged":
        failure = wire.JobFailure(number=3102, message="odd", failed=True, replaces=True)
        own.sendall(wire.encode_frame(wire.FAILED, msgspec.msgpack.encode(failure)))
    elif job.id == "told":
        text = [START.jars, START.java_home, START.java_runtime, os.environ.get("LIMNOS__SPARK__CACHE")]
        own.sendall(wire.encode_frame(wire.ROWS, msgspec.json.encode(text) + b"\n"))
    elif job.id.startswith("obey"):
        while own.recv(1):
            pass
        own.sendall(
            wire.encode_frame(wire.FAILED, msgspec.msgpack.encode(wire.JobFailure(number=41, message="cancelled")))
        )
    elif job.id.startswith("deaf"):
        time.sleep(600)
    elif job.id == "environment":
        text = " ".join(sorted(os.environ)) + " " + str(Path.cwd())
        own.sendall(wire.encode_frame(wire.ROWS, msgspec.json.encode(text) + b"\n"))
    own.sendall(wire.encode_frame(wire.DONE))
    own.close()


START: wire.EngineStart


def main() -> None:
    """Serve until the control socket is closed."""
    global START
    control = socket.socket(fileno=0)
    START = msgspec.msgpack.decode(wire.receive(control)[1], type=wire.EngineStart)
    os.chdir(START.scratch)
    while True:
        data, descriptors, _, _ = socket.recv_fds(control, 4, 4)
        if not data and not descriptors:
            os._exit(0)
        for descriptor in descriptors:
            threading.Thread(target=serve, args=(socket.socket(fileno=descriptor),), daemon=True).start()


if __name__ == "__main__":
    main()
