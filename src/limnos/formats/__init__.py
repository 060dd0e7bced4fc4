# SPDX-License-Identifier: Apache-2.0
"""Pure functions that build, check and convert table metadata, file contents and export records.

Must not know HTTP, SQL, files or permissions.
"""
