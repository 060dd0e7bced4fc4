# SPDX-License-Identifier: Apache-2.0
"""Gravitino's routes of table maintenance.

May import `access`, `model`, `services` and the modules of `http.gravitino`. Has no business rules.
"""
