"""From a registered URL to a connection: the registry's dialer for HTTP and gRPC.

One place knows which scheme belongs to which transport, the guard, the credentials and the limits.
"""

import ssl
from typing import Final

from acp_spec.bindings.fields import MAX_RESPONSE_BYTES
from acp_spec.model.enums import Transport
from gateway.runtime.connection import Connection
from gateway.runtime.registered import Endpoint
from gateway.transports.address_guard import (
    GRPC_SCHEMES,
    HTTP_SCHEMES,
    AddressGuard,
    AddressRefused,
    Scheme,
    Target,
    parse_component_url,
)
from gateway.transports.grpc_connection import GrpcConnection
from gateway.transports.http_connection import HttpConnection
from gateway.transports.outbound import ConnectionOptions, Credentials, no_credentials

_SCHEMES: Final[dict[Transport, frozenset[Scheme]]] = {
    Transport.HTTP: HTTP_SCHEMES,
    Transport.GRPC: GRPC_SCHEMES,
}


class ComponentDialer:
    """See `gateway.runtime.registered.Dialer`. `ca_pem`: authorities to trust besides."""

    def __init__(
        self,
        guard: AddressGuard,
        *,
        credentials: Credentials = no_credentials,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
        connect_timeout_ms: int = 1_000,
        ca_pem: bytes = b"",
    ) -> None:
        self._guard = guard
        self._credentials = credentials
        self._max_response_bytes = max_response_bytes
        self._connect_timeout_ms = connect_timeout_ms
        self._ca_pem = ca_pem
        self._tls: ssl.SSLContext | None = None

    def normal_url(self, url: str, transport: Transport) -> str:
        return self._target(url, transport).url

    def open(self, endpoint: Endpoint) -> Connection:
        target = self._target(endpoint.url, endpoint.transport)
        options = ConnectionOptions(
            max_response_bytes=self._max_response_bytes,
            max_request_bytes=endpoint.max_request_bytes,
            connect_timeout_ms=self._connect_timeout_ms,
            auth=endpoint.auth,
        )
        if endpoint.transport is Transport.GRPC:
            return GrpcConnection(
                target,
                self._guard,
                options=options,
                credentials=self._credentials,
                ca_pem=self._ca_pem,
            )
        tls = self._tls_context() if target.is_tls else None
        return HttpConnection(
            target, self._guard, options=options, credentials=self._credentials, tls=tls
        )

    def _target(self, url: str, transport: Transport) -> Target:
        schemes = _SCHEMES.get(transport)
        if schemes is None:
            raise AddressRefused("an ATTACH component has no url: it dials the gateway")
        return parse_component_url(url, schemes)

    def _tls_context(self) -> ssl.SSLContext:
        """One context for all: loading the system's authorities takes 20 ms."""
        if self._tls is None:
            self._tls = ssl.create_default_context()
            if self._ca_pem:
                self._tls.load_verify_locations(cadata=self._ca_pem.decode())
        return self._tls
