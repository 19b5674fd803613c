"""The hosts, one after the other."""

from three_hosts import host

__all__ = ["host"]
