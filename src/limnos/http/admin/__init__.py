# SPDX-License-Identifier: Apache-2.0
"""The admin API under `/api/limnos/v1`, and the routes at the root: health, metrics, public settings, pages.

It serves operations that no other protocol has, such as moves, group members, tokens and explanations. `protocol`
collects the routes of the packages, whose names are those of `limnos.client`. The packages do not import one another.
"""
