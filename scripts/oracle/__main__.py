from __future__ import annotations

import sys
from pathlib import Path

if not __package__:  # run as a folder: python scripts/oracle ...
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    from oracle.cli import main
else:
    from .cli import main

sys.exit(main())
