# SPDX-License-Identifier: Apache-2.0
"""Storage locations: the register of locations, the claims on them, locations of tables, and purges."""
