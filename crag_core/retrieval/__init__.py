"""Adapters around files, the embedding model and LanceDB. Importing a module here loads none of the libraries behind it."""
