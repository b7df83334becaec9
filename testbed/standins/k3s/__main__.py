"""Stand-in for the K3s program: one file, as K3s is. Its flags are those of the release in flags.json.

It takes a configuration and joins machines as K3s does; it runs no container. docs/k3s.md says what that proves.
"""

from __future__ import annotations

import sys
from pathlib import Path

import arguments
import kubectl
import node
import record
import server

USAGE = "NAME:\n   k3s - stand-in; knows: server, agent, kubectl, --version"


def main() -> int:
    words = sys.argv[1:]
    if words[:1] in (["--version"], ["-v"]):
        print(f"k3s version {arguments.facts()['release']} (stand-in)\ngo version none")
        return 0
    if words[:1] == ["kubectl"] or Path(sys.argv[0]).name == "kubectl":
        return kubectl.main(words[1:] if words[:1] == ["kubectl"] else words)
    if words[:1] not in (["server"], ["agent"]):
        print(USAGE, file=sys.stderr)
        return 3
    command = words[0]
    try:
        options = arguments.parse(command, words[1:])
    except arguments.BadFlag as refusal:
        print(f"Incorrect Usage: {refusal}\n", file=sys.stderr)
        print(f'time="{record.stamp()}" level=fatal msg="Error: {refusal}"', file=sys.stderr, flush=True)
        return 1
    record.start(command, options)
    try:
        return server.run(options) if command == "server" else node.run_agent(options)
    except node.Fatal as fatal:
        node.log("fatal", str(fatal))
        return 1


if __name__ == "__main__":
    sys.exit(main())
