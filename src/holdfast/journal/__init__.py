"""What is remembered: sessions as logs that only grow, on disk."""
