"""Limnos' own API under `/api/limnos/v1`, and what lies at the root: health, metrics, public settings, a first page.

What no protocol offers: moves, group members, disabled users, tokens, explanations.
"""
