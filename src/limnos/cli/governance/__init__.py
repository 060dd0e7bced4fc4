# SPDX-License-Identifier: Apache-2.0
"""Commands about tags, restrictions and protection."""
