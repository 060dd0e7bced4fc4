"""Gravitino REST under `/api`: the administration API of Gravitino's clients of version 1.3.

Each resource has a module with its routes. `dto` encodes results, `errors` gives errors their codes, `handler_wrappers`
wraps handlers.
"""
