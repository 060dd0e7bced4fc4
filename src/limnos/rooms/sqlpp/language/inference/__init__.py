# SPDX-License-Identifier: Apache-2.0
"""Static types: the type that AsterixDB's compiler infers for each expression of a plan.

Must not know rows, datasets' files or an engine.
"""
