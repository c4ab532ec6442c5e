"""A component that takes as long as it is told, and stops when it is asked to."""
