"""Adapters around files, the embedding model and the index; importing them loads none of the libraries behind."""
