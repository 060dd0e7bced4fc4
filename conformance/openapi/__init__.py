# SPDX-License-Identifier: Apache-2.0
"""Requests generated from the committed documents, sent by five callers with different rights: no server error, and
every answer is documented.
"""
