"""The admin API under `/api/limnos/v1`, and the routes at the root: health, metrics, public settings, a first page.

It serves operations that no other protocol has: moves, group members, disabled users, tokens, explanations. `protocol`
collects the routes of the packages, which are those of `limnos.client`. The packages do not import one another.
"""
