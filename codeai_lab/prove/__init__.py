"""Evidence that outlives the process: can somebody who does not trust us check what happened?

`bundle` writes a run down, `verify` judges it and shares no code with anything here, `corrupt` damages a copy
in one named way, so that the judge is judged too; `corruptions` holds the ways.
"""
