"""The heart: pure, synchronous, standard library only.

Read it in this order: `messages` (what is said), `tools` and `limits` (what is allowed), `events`
(what happened), `effects` (what must be done), `machine` (the loop). Then `state`, `fold` and
`rounds` (how events make a state), `history` and `window` (what the model sees), `guards` (why a
run stops), `ledger` and `claims` (what it may say it did), `tokens` (how big things are), and
`cut`, `digest`, `jsontext` (how things get smaller).
"""
