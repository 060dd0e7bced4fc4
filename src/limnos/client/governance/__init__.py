# SPDX-License-Identifier: Apache-2.0
"""Calls about tags, policies, restrictions and protection."""
