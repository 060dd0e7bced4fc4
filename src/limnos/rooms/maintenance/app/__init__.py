# SPDX-License-Identifier: Apache-2.0
"""The process with Spark that the server starts for operations that wait."""
