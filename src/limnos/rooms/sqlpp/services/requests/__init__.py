# SPDX-License-Identifier: Apache-2.0
"""One request to the query service: its session, name resolution, errors, limits and results."""
