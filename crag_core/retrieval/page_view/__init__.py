"""A chunk on the page of its document: the page as a picture with the text marked."""
