# SPDX-License-Identifier: Apache-2.0
"""Execution of a pipeline's run: order of steps, attempts, and a single publishing commit.

Updates the server's record of the run through `client`, lets an engine execute the steps, and publishes by one commit.
Must not know Spark.
"""

from __future__ import annotations
