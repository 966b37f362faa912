"""What does it cost, compared with doing the same work in the plainest way?

One module a question; `README.md` says how to run them and how to read the table. Nothing here is imported
by the package.
"""
