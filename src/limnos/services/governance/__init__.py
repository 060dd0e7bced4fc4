# SPDX-License-Identifier: Apache-2.0
"""Tags, policies, statistics and read restrictions of objects."""
