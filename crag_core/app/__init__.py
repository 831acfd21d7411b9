"""Puts the parts together: settings, policies, permissions, the command line.

Only here are concrete adapters chosen.
"""
