"""One file for each engine: how it spells the verbs of `driver.py`."""
