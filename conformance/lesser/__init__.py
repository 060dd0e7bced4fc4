"""Whether any test notices a use of an action that asks for less: requests of tests are sent again with the use
lowered.
"""
