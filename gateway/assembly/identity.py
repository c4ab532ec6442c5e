"""What is made once for a data directory and kept: the gateway's id, the secret of call-backs."""

from typing import Final

from gateway.runtime.clock import Chance
from gateway.stores.ports import Store, Table

SECRET_KEY: Final = b"callback-secret"
SECRET_BYTES: Final = 32
ID_KEY: Final = b"gateway-id"
ID_BYTES: Final = 8


def callback_secret(store: Store, chance: Chance) -> bytes:
    """The secret behind call-back tokens; made once, so that a token outlives a restart."""
    return _kept(store, SECRET_KEY, made=chance.random_bytes(SECRET_BYTES))


def kept_secret(store: Store) -> str:
    """The same, for whoever comes after it was made."""
    found = store.get(Table.META, SECRET_KEY)
    assert found is not None, "the secret is made before the first session"
    return found.hex()


def gateway_id(store: Store, chance: Chance) -> str:
    """The id in `via`: of this data directory, whatever its address."""
    return _kept(store, ID_KEY, made=chance.random_bytes(ID_BYTES)).hex()


def _kept(store: Store, key: bytes, *, made: bytes) -> bytes:
    value = store.get(Table.META, key)
    if value is None:
        value = made
        batch = store.batch()
        batch.put(Table.META, key, value)
        store.write(batch)
        store.sync()
    return value
