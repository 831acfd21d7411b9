"""What an index can stand on; `backend.py` says what that takes."""
