"""The only place that acts on the world: how does one request become an effect, or not?

Read in this order: `stages` and `acting` (what each step promises, before the effect and around it),
`revisions` (which steps, in which order: five rule sets), `walk` (one request under way), `runtime` (the
front door), then `effects` (a small honest world to act on) and `calls` (the same question for model calls).
"""
