"""Report: what was found, for a terminal, a file, a CI server. Reads findings, knows nothing of hosts."""
