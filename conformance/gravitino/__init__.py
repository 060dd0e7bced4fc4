# SPDX-License-Identifier: Apache-2.0
"""Gravitino's own clients against a server with access control on: every public method, as an admin and as ordinary
users.

May import `limnos` and the standard library. What runs in the client's own environment (`script`, `call_record`)
imports nothing of Limnos.
"""
