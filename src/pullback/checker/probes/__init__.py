"""One file is one probe, found by its presence here: `probe(subject, settings) -> list[Finding]`."""
