# SPDX-License-Identifier: Apache-2.0
"""Lance REST, and the worker processes that read and write Lance tables."""
