"""The edit classes."""
