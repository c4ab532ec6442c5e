"""Clients that send any bytes and give back what came, without opinion: HTTP/1.1 and gRPC."""
