# SPDX-License-Identifier: Apache-2.0
"""Whether a test notices that a use of an action requires less: requests of tests are repeated with the use lowered."""
