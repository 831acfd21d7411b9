"""Reads, chunks and draws untrusted files in child processes, within limits."""
