# SPDX-License-Identifier: Apache-2.0
"""The wheel in clean environments: each extra alone is sufficient for its purpose."""
