# SPDX-License-Identifier: Apache-2.0
"""Version 1 of the messages; a second major version would be a sibling package."""
