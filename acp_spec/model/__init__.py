"""Pure types of ACP v1: what is on the wire, in memory and in a trajectory.

Every type is a frozen `msgspec.Struct` whose field names are the proto's names. Nothing here does
IO, reads a clock or draws a random number; nothing here knows protobuf. Payload fields hold JSON
text byte for byte (`Payload`); `ABSENT` is a payload that is not there, which is not JSON null.
"""
