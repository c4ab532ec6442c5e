"""The ACP gateway: an application; what others may import of it is `gateway.stores.reader`."""
