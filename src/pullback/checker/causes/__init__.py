"""One file is one cause, found by its presence here."""
