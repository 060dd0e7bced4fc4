# SPDX-License-Identifier: Apache-2.0
"""Worker processes for Lance tables, and the server of a directory without a store."""
