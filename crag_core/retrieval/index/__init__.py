"""The index of documents: what goes in, what is searched, and re-indexing beside it."""
