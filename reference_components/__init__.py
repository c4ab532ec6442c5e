"""Components in several languages that show the protocol: the bank hotline and test pieces."""
