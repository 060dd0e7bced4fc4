"""`python -m conformance.engines.host ENGINE`: one driver in a process of its own, asked by lines of JSON on standard input.

Job: read a verb and its arguments, answer what it gave or what was raised. Drivers in other languages speak the same lines themselves. May
import the drivers. What an engine prints goes to standard error, so that only answers are on the pipe.
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


def made(engine: str) -> Driver:
    """The driver of an engine: the class `Engine` of its file."""
    return importlib.import_module(f"conformance.engines.drivers.{engine}_driver").Engine()  # type: ignore[no-any-return]


def answer(driver: Driver, line: str) -> dict[str, object]:
    """Do what a line asks for."""
    verb, arguments = json.loads(line)
    try:
        if verb == "start":
            driver.start(Place(**{**arguments[0], "work": Path(arguments[0]["work"])}))
            return {"told": {"title": driver.title, "dialect": driver.dialect, "limits": driver.limits}}
        return {"told": getattr(driver, verb)(*arguments)}
    except Exception as error:
        return {"error": words(error)}


def words(error: BaseException) -> str:
    """What an error and its causes say, each once."""
    told: list[str] = []
    at: BaseException | None = error
    while at and len(told) < 8:
        text = f"{type(at).__name__}: {at}"
        if text not in told:
            told.append(text)
        at = at.__cause__ or at.__context__
    return " / ".join(told)


def main(engine: str) -> None:
    """Answer until the input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    driver = made(engine)
    for line in sys.stdin:
        faulthandler.dump_traceback_later(_TOLD_S)  # where a verb hangs is in the log
        answers.write(json.dumps(answer(driver, line), default=str) + "\n")
        answers.flush()
        faulthandler.cancel_dump_traceback_later()
    driver.stop()


if __name__ == "__main__":
    main(sys.argv[1])
