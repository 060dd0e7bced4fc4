# SPDX-License-Identifier: Apache-2.0
"""Calls about tags, policies, restrictions and protection.

May import `model`, `names`, the packages before it and the shared modules of `limnos.client`.
"""
