"""The drivers: they append events, run the engine and do what its commands say."""
