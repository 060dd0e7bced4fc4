# SPDX-License-Identifier: Apache-2.0
"""Pages of tags and policies: lists, the objects that have one, and forms that create, attach and detach them."""
