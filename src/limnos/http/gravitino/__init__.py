"""Gravitino REST under `/api`: what Gravitino's clients of version 1.3 call to administer.

A module for each resource with its routes; `dto` encodes, `errors` gives failures their codes, `told` wraps handlers.
"""
