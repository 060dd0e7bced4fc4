"""One file for each engine, with its implementation of the verbs of `driver.py`."""
