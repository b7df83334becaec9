"""docs/use-it-from-your-tools.md: what to paste for each client, out of clients.yml.

python -m scripts.docs.connect_page
"""

from __future__ import annotations

import re
import sys

from sparkloom.base.repository import REPO
from sparkloom.render import clients

PAGE = REPO / "docs/use-it-from-your-tools.md"
SHOWN = {
    "URL": "https://192.168.1.101/v1", "MODEL": "glm", "CONTEXT": "131072", "OUTPUT": "32768",
    "KEY": "~/.config/sparkloom/home/api-key", "CA": "~/.config/sparkloom/home/ca.pem",
}  # fmt: skip


def text() -> str:
    return put(
        PAGE.read_text(encoding="utf-8"), "clients", "\n".join(_one(client) for client in clients.every().values())
    )


def put(page: str, name: str, text: str) -> str:
    """A page with this in the place of that name."""
    return re.sub(
        rf"(<!-- {name} -->\n).*?(<!-- end -->)", lambda found: f"{found[1]}\n{text}\n{found[2]}", page, flags=re.S
    )


def _one(client: clients.Client) -> str:
    return f"### {client.title}\n```\n{client.filled(SHOWN).lines}\n```\n"


if __name__ == "__main__":
    sys.stdout.write(text())
