# SPDX-License-Identifier: Apache-2.0
"""Pages with forms that create and rename objects of the tree.

A form whose name is refused is shown again with the service's message. Imports as its modules do.
"""
