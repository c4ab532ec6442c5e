"""The SDK: write a component, call one, use the gateway, test without sockets.

Import what you need from its module (`acp_spec.sdk.component`, `acp_spec.sdk.http_client`, ...) or
the short names from `acp_spec`; nothing here imports the gateway.
"""
