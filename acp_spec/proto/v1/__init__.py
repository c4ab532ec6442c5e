"""`acp.proto`, package acp.v1, and the generated `acp_pb2` beside it."""
