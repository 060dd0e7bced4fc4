"""Execution of a pipeline's run: order of steps, attempts, and a single publishing commit.

Job: keep the server's record of the run through `client`, let an engine execute the steps, and publish by one commit.
May import `client`, `model` and this room; it must not know Spark.
"""

from __future__ import annotations
