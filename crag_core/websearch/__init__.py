"""Web search providers: a class with `search(query, limit, cancel)` that tells every outcome and never raises."""
