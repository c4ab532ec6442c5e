"""Borders: HTTP and gRPC in, HTTP and gRPC out. Foreign errors are translated here, once."""
