# SPDX-License-Identifier: Apache-2.0
"""The pages of pipelines and their runs.

May import `services`, `model`, `names` and the console's shared modules, but no page of another domain.
"""
