# SPDX-License-Identifier: Apache-2.0
"""Lance tables as outputs of steps: fragments by executors, staged versions by the driver, published by the run."""
