"""`python -m sparkloom.cli`: the same program as `sparkloom`."""

from sparkloom.cli.program import main

main()
