"""Mending: small edits of a wrong gradient's source, found by search and proven by the checker."""
