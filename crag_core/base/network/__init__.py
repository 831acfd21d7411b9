"""Addresses that requests may go to, database URLs, and limits on waiting for a server.

Opens no connection of its own.
"""
