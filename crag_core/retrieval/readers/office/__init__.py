"""Office and OpenDocument files before the library reads them: hidden parts leave, spanned cells are filled, and what
it does not read (headers, charts) is put where it does. Workbooks are read here."""
