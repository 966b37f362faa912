"""What does `python -m codeai_lab` do? The same as `codeai-lab`."""

from codeai_lab.cli import main

main()
