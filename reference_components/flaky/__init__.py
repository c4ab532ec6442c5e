"""A component that fails by a given script, so that recovery can be tested to the letter."""
