"""An index in a PostgreSQL with the extension vector."""
