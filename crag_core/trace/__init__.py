"""The record of one run, and what follows from it alone: another policy, edits, opinions, figures. Pure.

Nothing in here runs, asks or stores anything.
"""
