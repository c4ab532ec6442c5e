"""The suite that any third party runs against its component, in any language.

Empty for now: the cases come with their own change, one per requirement of
`acp_spec/requirements`. This package will import only `acp_spec` and reach components by wire.
"""
