"""What happens in every case, and not only in the one that was tried?

Many runs at once. Through the real stages and without a thread, read in this order: `worlds` (a world that
can be wound back), `protocols` (rule sets composed from our stages, good and broken ones), `other_stages`
(the stages that `lab` lacks), `moments` (one moment of several walks, and when two moments are the same),
`schedules` (every order in which walks can move), `crash_points` (every boundary at which one can be
dropped).

By chance, which comes from one place (`dice`): `sleeps` (waits of a crowd), `library_laws` (how libraries in
use wait), `contention` (clients that change one row), `systems`, `budgets`, `overload`, `slotted` (a server
with more work than time, one event after another or in slots), `layers`, `hedging`, `throttling` (what
retries multiply, and what holds them back), `duplicates` (how often an effect happens twice), and `sweeps`
(long experiments in parts).
"""
