# SPDX-License-Identifier: Apache-2.0
"""Commands about directories of Lance tables."""
