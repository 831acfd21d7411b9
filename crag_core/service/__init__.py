"""The service: decisions, answers and documents over HTTP, for a program that has a RAG system of its own.

Above `app`, whose workbench it asks; only the command `serve` imports it. It decides nothing itself.
"""
