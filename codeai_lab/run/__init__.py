"""The only place that acts on the world: how does one request become an effect, or not?

Read in this order: `stages` (what is decided before), `acting` (around the effect), `revisions` (which steps,
in which order: five rule sets), `walk` (one request under way), `runtime` (the front door), `reconciling`
(what became of an effect that is unknown), then `effects` (a small honest world to act on). Model calls ask
the same question: `calls` (replay or conflict), `callwalk` and `working` (fourteen events), `resuming` (go
on, or refuse), `reconciling_calls` (was it asked?), `provider` (who answers).
"""
