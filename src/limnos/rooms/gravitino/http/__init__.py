# SPDX-License-Identifier: Apache-2.0
"""Gravitino REST under `/api`: the administration API of Gravitino's clients of version 1.3.

Each resource has a module with its routes. `dto` encodes results, `errors` encodes errors with their codes and
statuses, and `handler_wrappers` has the common steps of all handlers.
"""
