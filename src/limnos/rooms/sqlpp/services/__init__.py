# SPDX-License-Identifier: Apache-2.0
"""SQL++ services: `statements` parses a request's text and executes its statements in order, through the packages
below.

Its packages import only the earlier ones of this list: `requests`, `locks`, `definitions`, `execution`.
"""
