# SPDX-License-Identifier: Apache-2.0
"""Pages, a tab and lines of the console about the maintenance of tables."""
