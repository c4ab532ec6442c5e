"""The protocol buffer source of ACP and what protoc makes of it (`make gen`)."""
