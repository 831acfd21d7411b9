"""A home folder in one file, taken while the application runs, and back."""

from crag_core.storage.backup.archive import read_archive, write_archive
from crag_core.storage.backup.collect import collected, left_out
from crag_core.storage.backup.manifest import Counts, Manifest
from crag_core.storage.backup.restore import put_in_place, unfinished
from crag_core.storage.backup.target import new_file

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
