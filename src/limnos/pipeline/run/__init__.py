"""How a pipeline runs: which steps when, under which attempt, and that all of it is published or nothing.

Job: speaks to the server's record of the run through `client`, has steps carried out by an engine it is given, and
publishes by one commit. May import `client`, `model` and this room; it must not know Spark.
"""

from __future__ import annotations
