"""The cluster in virtual time: the fake that tests of every layer use, and where days are tried out in seconds.

Promises: it acts on plans exactly as a real cluster does, chooses nothing, and the same script gives the same history.
"""
