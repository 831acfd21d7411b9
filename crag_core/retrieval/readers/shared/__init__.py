"""What several readers use: decoding, packages, tables as text."""
