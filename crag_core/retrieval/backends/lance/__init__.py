"""Passages and rows in LanceDB tables, read here and written in a process of its own."""
