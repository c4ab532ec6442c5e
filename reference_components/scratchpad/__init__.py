"""The component that runs code nobody has read: each call is a program in the sandbox."""
