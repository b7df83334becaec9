module sparkloom/testbed/pause

go 1.25.0
