# SPDX-License-Identifier: Apache-2.0
"""Hints after a failure: for each kind of failure, the complete command that helps next.

A test runs every command that is named here. A failure without a known next step gets no hint.
"""
