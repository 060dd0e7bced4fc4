# SPDX-License-Identifier: Apache-2.0
"""The product's operations, one module per resource, independent of protocols.

Readers are plain functions over a `RequestView`. A change is a decision that makes a `Permit`, and a mutation that
takes it.
"""
