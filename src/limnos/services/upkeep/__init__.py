# SPDX-License-Identifier: Apache-2.0
"""Background work: tasks, trash, janitors, and keys of secrets."""
