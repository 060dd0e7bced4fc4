# SPDX-License-Identifier: Apache-2.0
"""Commands about tags, restrictions and protection.

May import the shared modules of `limnos.cli`, the packages before it, and the modules that those may import.
"""
