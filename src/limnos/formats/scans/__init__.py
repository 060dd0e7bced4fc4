# SPDX-License-Identifier: Apache-2.0
"""Scan planning for Iceberg tables: computes the files to read, from metadata, a scan request and the bytes of
manifests. Pure.

Must not know rights, file access or storage of plans.
"""
