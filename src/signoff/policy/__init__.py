"""Rules about calls: parse rules strictly, match them on the values of a call, return a verdict with reasons.

Pure, like `core`.
"""
