# SPDX-License-Identifier: Apache-2.0
"""The SQL++ prompt and its session.

May import the shared modules of `limnos.cli`, the packages before it, and the modules that those may import.
"""
