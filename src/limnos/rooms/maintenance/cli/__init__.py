# SPDX-License-Identifier: Apache-2.0
"""Commands about the maintenance of tables."""
