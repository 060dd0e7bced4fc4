# SPDX-License-Identifier: Apache-2.0
"""Foreign processes that send lineage or use filesets, against a running server."""
