# SPDX-License-Identifier: Apache-2.0
"""Change feed, webhooks, audit and lineage."""
