"""A home folder in one file, taken while the application runs, and back."""

from crag_core.backup.archive import read_archive, write_archive
from crag_core.backup.collecting import collected, left_out
from crag_core.backup.manifest import Counts, Manifest
from crag_core.backup.replacing import put_in_place, unfinished
from crag_core.backup.target import new_file

__all__ = [
    "Counts",
    "Manifest",
    "collected",
    "left_out",
    "new_file",
    "put_in_place",
    "read_archive",
    "unfinished",
    "write_archive",
]
