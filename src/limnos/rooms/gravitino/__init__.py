# SPDX-License-Identifier: Apache-2.0
"""Gravitino REST. The command line and the client read and change the tree by it."""
