# SPDX-License-Identifier: Apache-2.0
"""The command that opens the console."""
