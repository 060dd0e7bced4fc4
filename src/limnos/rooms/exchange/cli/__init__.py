# SPDX-License-Identifier: Apache-2.0
"""The commands `export`, `import` and `ask`."""
