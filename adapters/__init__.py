"""Adapters that wrap foreign systems (SQL, SOAP, search, LLM servers) as ACP components.

Empty for now: the contract every adapter meets and the first adapters come with their own change.
Until then the pattern to copy is `reference_components/ledger_adapter`. This package will import
only `acp_spec`.
"""
