"""Between bytes and types: `json` and `proto` for messages, `scan` for payloads as they enter,
`json_text` and `yaml_tree` for text that must keep its spelling. `json` never imports protobuf.
"""
