# SPDX-License-Identifier: Apache-2.0
"""The routes of exports, imports and system tables in the own API."""
