"""The heart: pure, synchronous, standard library only.

Read it in this order: `messages` (what is said), `tools` and `limits` (what is allowed), `events`
(what happened), `effects` (what must be done), `machine` (the loop), with `calls` and `room` beside
it. Then `state`, `fold` and `rounds` (how events make a state), `history`, `window` and `eviction`
(what the model sees), `guards` (why a run stops), `answers` (what is none), `ledger` and `claims` (what it may say it did),
`instructions` (what the harness says), `tokens` (how big things are), `cut`, `digest`, `jsontext`
(how things get smaller), `trail` (a list that shares) and `copies` (values that change).
"""
