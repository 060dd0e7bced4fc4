# SPDX-License-Identifier: Apache-2.0
"""Change feed, webhooks, audit and lineage. May import `sqlpp` and the packages that `sqlpp` may import."""
