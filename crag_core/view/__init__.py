"""One view of a run as plain data, drawn by the pages and by the report. Pure.

Decides nothing and knows no screen.
"""
