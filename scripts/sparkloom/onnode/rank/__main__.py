"""`python3 /sparkloom/rank -- ENGINE WORDS` in a pod, `python -m sparkloom.onnode.rank` elsewhere."""

import sys

from sparkloom.onnode.rank.main import main

sys.exit(main(sys.argv[1:]))
