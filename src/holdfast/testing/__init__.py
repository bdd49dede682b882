"""Stand-ins for the world, shipped: what our own tests, the examples and your tests share."""
