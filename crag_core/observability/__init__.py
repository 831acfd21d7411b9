"""Listeners of runs: metrics, logs, spans and the audit log.

What they do never changes a run.
"""
