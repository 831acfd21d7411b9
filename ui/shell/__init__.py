"""Around every page: router, sidebar, health, sign-in, shutdown."""
