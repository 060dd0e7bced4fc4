# SPDX-License-Identifier: Apache-2.0
"""Gravitino's routes of table maintenance.

Has no business rules.
"""
