"""Real programs in the real sandbox: each limit is met by one that exceeds it."""
