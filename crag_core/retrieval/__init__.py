"""Adapters around files, the embedding model and LanceDB; importing them loads none of the libraries behind."""
