"""The witness: counts effects durably, so that a test can prove that nothing ran twice."""
