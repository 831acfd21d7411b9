"""Runs a question: retrieve, grade, route, correct, answer; every stage writes to the trace.

Knows its parts by their protocols alone.
"""
