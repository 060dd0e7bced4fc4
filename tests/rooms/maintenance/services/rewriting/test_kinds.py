# SPDX-License-Identifier: Apache-2.0
"""Options of Iceberg's rewrite actions: a policy overrides the defaults, within the limits of the server."""

from __future__ import annotations

from limnos.rooms.maintenance.services.rewriting.kinds import GROUP_BYTES, RewriteOptions, action_options


def test_server_limits_override_a_stored_policy() -> None:
    """The server's limits override a stored policy with larger file groups or more concurrent groups."""
    stored_options = {
        "max-concurrent-file-group-rewrites": "10000",
        "max-file-group-size-bytes": "1",
        "min-input-files": "2",
    }
    options = action_options("compact", RewriteOptions(options=stored_options))

    assert options["max-concurrent-file-group-rewrites"] == "20"
    assert options["max-file-group-size-bytes"] == str(GROUP_BYTES)
    assert options["min-input-files"] == "2"
    assert "max-concurrent-file-group-rewrites" not in action_options("compact", RewriteOptions())
