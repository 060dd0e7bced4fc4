# SPDX-License-Identifier: Apache-2.0
"""Lance tables as names of the tree, and the components by which the room of Lance reads and changes their files."""
