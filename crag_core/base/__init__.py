"""The words everything else speaks: frozen records, protocols, errors, text and network checks.

Imports nothing of this project outside this folder.
"""
