# SPDX-License-Identifier: Apache-2.0
"""Statements that export and import a metalake.

May import `model`, `limnos.store.objects`, `limnos.store.identity` and the modules of `limnos.store` below `tx`.
"""
