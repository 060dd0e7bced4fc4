# SPDX-License-Identifier: Apache-2.0
"""Commands for many objects at once: bulk jobs, and moving tables between catalogs."""
