"""What a suite brings to a gateway: components that keep what they get, say what they must."""
