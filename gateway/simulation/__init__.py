"""The whole gateway in one process under virtual time, with everything around it that can fail."""
