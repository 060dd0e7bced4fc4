# SPDX-License-Identifier: Apache-2.0
"""One file for each engine, with its implementation of the verbs of `driver.py`."""
