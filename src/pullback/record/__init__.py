"""Record: find the custom gradients of a running program, without changing it."""
