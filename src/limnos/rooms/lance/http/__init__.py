# SPDX-License-Identifier: Apache-2.0
"""Lance REST: the namespace protocol of Lance's clients, over the same tree of objects."""
