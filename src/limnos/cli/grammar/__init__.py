# SPDX-License-Identifier: Apache-2.0
"""The grammar of the command line: what was typed, as a command, and the answers to words that are none.

Runs no command and imports no parser, so that a slip is answered at once.
"""
