"""The suite that any third party runs against its component or gateway, in any language.

Cases are data (`cases/`), one requirement of `acp_spec/requirements` each; `runner` expands and
runs them; `raw` writes bytes; `broken` holds the peers that prove the cases. This package imports
only `acp_spec` and reaches everything else by wire.
"""
