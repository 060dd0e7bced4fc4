# SPDX-License-Identifier: Apache-2.0
"""Manifests of rooms: what each optional part of the product adds to it, as plain data.

Imports nothing of Limnos, so that the command line, the settings and the server read the same manifests. Code is named
by text, `module:name`, and imported only by who uses it.
"""
