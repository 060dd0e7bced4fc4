# SPDX-License-Identifier: Apache-2.0
"""Each engine with a token that expires in the middle of its session.

Job: a token of the reader that lives for some minutes, one read before its end and one after it. The second read must
be refused with the server's sentence, which says what to do; an engine that shows another one declares it as a limit.
May import the story's words. It must not know any engine.
"""

from __future__ import annotations

import time

from conformance.engines.driver import Place
from conformance.engines.remote import CallRefused
from conformance.engines.story import FAILED, OK, Outcome, Story
from limnos.client import Client

CALLER = "expiring"
LIFETIME_S = 150
"""Long enough for the start of the slowest engine and a read."""
_OVER_S = 2
SPACE, TABLE = ["open"], "t"
BEFORE, AFTER = "a token that will expire reads", "after its token expired"
MESSAGE = "The token has expired: sign in again, or ask an administrator for a new one ('limnos create token')"


def furnish(place: Place, *, uri: str, admin: str) -> float:
    """Give a place the token of one more caller. Returns the monotonic time at which the token has expired."""
    with Client(uri, token=admin) as client:
        place.tokens[CALLER] = client.tokens.create(user="rita", expires_in_s=LIFETIME_S).token
    return time.monotonic() + LIFETIME_S + _OVER_S


def tell(story: Story, *, expired_at: float) -> None:
    """Read before and after the end of the token, in one session of the engine."""
    story.remote.ask("be", CALLER)
    story.check(BEFORE, lambda: story.read(SPACE, TABLE))
    time.sleep(max(0.0, expired_at - time.monotonic()))
    try:
        message = f"not refused: {story.remote.ask('read', SPACE, TABLE, ['id', 'city'])}"
    except CallRefused as error:
        message = " ".join(str(error).split())
    words = story.remote.limits.get(AFTER, MESSAGE)
    excerpt = message[max(0, message.find(words) - 200) :][:700]
    story.outcomes.append(Outcome(story.engine, AFTER, OK if words in message else FAILED, excerpt))
