"""Does any test notice when one use of an action asks for less? Requests of tests are sent again with the use
lowered.
"""
