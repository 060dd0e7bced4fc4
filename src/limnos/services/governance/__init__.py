# SPDX-License-Identifier: Apache-2.0
"""Tags, policies, statistics and read restrictions of objects.

May import `identity` and the packages that it may import.
"""
