# SPDX-License-Identifier: Apache-2.0
"""`python -m conformance.engines.host ENGINE`: a driver in a separate process, called by JSON lines on its input.

Job: read a verb and its arguments, answer its result or its error. Drivers in other languages use the same line
protocol. May import the drivers. The engine's own output goes to standard error, so that the pipe has only answers.
"""

from __future__ import annotations

import faulthandler
import importlib
import json
import os
import sys
from pathlib import Path

from conformance.engines.driver import Driver, Place

_TOLD_S = 120


def create_driver(engine: str) -> Driver:
    """Return the driver of an engine: the class `Engine` of its file."""
    return importlib.import_module(f"conformance.engines.drivers.{engine}_driver").Engine()  # type: ignore[no-any-return]


def answer(driver: Driver, line: str) -> dict[str, object]:
    """Execute the verb of a line."""
    verb, arguments = json.loads(line)
    try:
        if verb == "start":
            driver.start(Place(**{**arguments[0], "work": Path(arguments[0]["work"])}))
            return {"told": {"title": driver.title, "dialect": driver.dialect, "limits": driver.limits}}
        return {"told": getattr(driver, verb)(*arguments)}
    except Exception as error:
        return {"error": words(error)}


def words(error: BaseException) -> str:
    """Return the messages of an error and its causes, each once."""
    messages: list[str] = []
    at: BaseException | None = error
    while at and len(messages) < 8:
        text = f"{type(at).__name__}: {at}"
        if text not in messages:
            messages.append(text)
        at = at.__cause__ or at.__context__
    return " / ".join(messages)


def main(engine: str) -> None:
    """Answer until the input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    driver = create_driver(engine)
    for line in sys.stdin:
        faulthandler.dump_traceback_later(_TOLD_S)  # the log shows where a verb hangs
        answers.write(json.dumps(answer(driver, line), default=str) + "\n")
        answers.flush()
        faulthandler.cancel_dump_traceback_later()
    driver.stop()


if __name__ == "__main__":
    main(sys.argv[1])
