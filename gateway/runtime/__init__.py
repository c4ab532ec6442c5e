"""The drivers: they append events, run the engine, do what its commands say; they decide nothing."""
