# SPDX-License-Identifier: Apache-2.0
"""Each room switched off and deleted in turn: the rest of the server works."""
