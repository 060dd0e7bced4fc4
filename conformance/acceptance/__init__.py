# SPDX-License-Identifier: Apache-2.0
"""Access control across protocols, nodes and stores: the effect of each change on the next request, and its cost."""
