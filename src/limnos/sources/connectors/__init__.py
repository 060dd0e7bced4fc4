# SPDX-License-Identifier: Apache-2.0
"""Connectors: one for each kind of external system, behind the protocols of `capabilities`. Decision record 0078."""
