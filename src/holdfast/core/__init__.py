"""The heart: pure, synchronous, standard library only.

Read it in this order: `messages` (what is said), `events` (what happened), `effects` (what must
be done), `machine` (the loop). Then `state`, `fold` and `rounds` (how events make a state),
`window` and `history` (what the model sees), `guards` and `ledger` (why a run stops, and what it
may claim), `limits` and `tokens` (how much).
"""
