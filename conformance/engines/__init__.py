# SPDX-License-Identifier: Apache-2.0
"""Unmodified third-party engines against a running server."""
