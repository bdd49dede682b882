"""What can be done: tools, the gateway they all pass, and their permissions."""
