"""`python3 /sparkloom/rank -- ENGINE WORDS` in a pod, `python -m sparkloom.rank` elsewhere."""

import sys

from sparkloom.rank.main import main

sys.exit(main(sys.argv[1:]))
