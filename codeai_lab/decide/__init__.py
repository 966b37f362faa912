"""Facts in, answer out: which decisions does the protocol rest on?

Everything in this room is pure: no clock, no database, no files, no randomness. Read in this order:
`identity` (are two requests the same?), `authority` (may this be asked now?), `projection` (what does the
history say?), `witnesses` (what do ledger, world and summary each say, and do they agree?). Then `workstate`
(what was left of a model call?) and `retention` (what may be forgotten, and what is answered afterwards?).
"""
