"""What a person starts. Each app wires the parts together and shows what happens."""
