"""CRAG for LlamaIndex: the postprocessor and the query engine that a LlamaIndex user composes.

Nodes that come in are copied, never changed.
"""
