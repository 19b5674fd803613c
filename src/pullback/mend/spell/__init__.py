"""Tables of spellings, one file a host."""
