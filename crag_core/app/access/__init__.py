"""Who is signed in and what they may do. Pure."""
