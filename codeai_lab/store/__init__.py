"""Durable facts: where does an acknowledged event live?

In a journal of lines that are on disk before `append` returns (`lines`, `journal`), indexed by DuckDB for
questions in SQL (`index`), held together as one ledger with one writer (`ledger`), read by anyone else
without a lock (`reader`), and repaired on request (`restore`). `memory` is the same ledger as a list: the
specification.
"""
