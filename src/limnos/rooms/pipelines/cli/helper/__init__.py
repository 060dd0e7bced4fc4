# SPDX-License-Identifier: Apache-2.0
"""A resident process that answers commands about pipelines with a Java machine that already runs.

`client` asks it, `process` is it, `child` runs one command in a fork of it. See decision 0298.
"""
