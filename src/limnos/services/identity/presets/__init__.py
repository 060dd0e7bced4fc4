# SPDX-License-Identifier: Apache-2.0
"""Presets of privileges: their grants, what a user lacks of them, and requests for them."""
