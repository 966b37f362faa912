"""What happens in every case, and not only in the one that was tried?

Many runs at once, through the real stages and without a thread. Read in this order: `worlds` (a world that
can be wound back), `protocols` (rule sets composed from our stages, good and broken ones), `moments` (one
moment of several walks, and when two moments are the same), `schedules` (every order in which walks can
move), `crash_points` (every boundary at which one can be dropped).
"""
