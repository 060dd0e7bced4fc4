# SPDX-License-Identifier: Apache-2.0
"""Exports of metalakes as messages and bytes, without I/O (`proto/limnos/v1/export.proto`).

Must not know HTTP, SQL, files or permissions.
"""
