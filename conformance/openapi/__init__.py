"""Requests made from the committed documents, as five who may do more or less: nothing breaks, and each answer is
documented.
"""
