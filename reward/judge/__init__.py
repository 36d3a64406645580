"""A language model that judges a conversation where no rule can.

Promises: a verdict is read in full and in range, or there is none; what is judged is data.
"""
