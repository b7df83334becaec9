"""An ordinary user on every node, as a Spark's owner makes one on first boot: SSH with a key, sudo with a password.

Ansible logs in as that user, so that a task which forgot to ask for root fails here as it does on a Spark.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from testbed.base.shell import out, run

USER = "nvidia"
PASSWORD = "sparkloom"  # of machines that only this computer reaches; inventories/{kind,bare} hold it as well
MAKE = r"""
set -eu
id "$1" >/dev/null 2>&1 || useradd --create-home --shell /bin/bash --groups sudo "$1"
# a cheap hash: every task of every play asks sudo, and yescrypt is dear on purpose (73 ms a task, 29 with this one)
echo "$1:$2" | chpasswd -c SHA512 -s 1000
home=$(getent passwd "$1" | cut -d: -f6)
install -d -m 700 -o "$1" -g "$1" "$home/.ssh"
cat >"$home/.ssh/authorized_keys"
chown "$1:$1" "$home/.ssh/authorized_keys"
# the image's keys are everybody's; a machine has its own, as a Spark does from its first boot
grep -qs "@$(uname -n)$" /etc/ssh/ssh_host_ed25519_key.pub || rm -f /etc/ssh/ssh_host_*
ssh-keygen -A >/dev/null
systemctl unmask ssh.service ssh.socket >/dev/null 2>&1 || true
# a machine that has just booted may refuse a job or two
for pause in 1 1 2 4; do systemctl enable --quiet --now ssh.service && break || sleep $pause; done
systemctl restart ssh.service # it may have begun with the keys before
systemctl is-active --quiet ssh.service || { systemctl status --no-pager ssh.service >&2; exit 1; }
"""
SHOW = "echo $(cut -d' ' -f1,2 /etc/ssh/ssh_host_ed25519_key.pub) $(cat /etc/machine-id)"
ADDRESS = "{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}"
HOST = """Host {name}
  HostName {address}
  HostKeyAlias {name}
"""
COMMON = """Host *
  User {user}
  IdentityFile {folder}/id
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known_hosts
  StrictHostKeyChecking yes
  LogLevel ERROR
"""


def _key(folder: Path) -> str:
    if not (folder / "id.pub").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, mode=0o700)
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "sparkloom-testbed", "-f", folder / "id"])
    return (folder / "id.pub").read_text()


def _addresses(containers: Mapping[str, str]) -> dict[str, str]:
    return {
        name: out(["docker", "inspect", "--format", ADDRESS, container]).split()[0]
        for name, container in containers.items()
    }


def _written(folder: Path, addresses: Mapping[str, str]) -> str:
    hosts = "".join(HOST.format(name=name, address=address) for name, address in addresses.items())
    return hosts + COMMON.format(user=USER, folder=folder)


def known(folder: Path, containers: Mapping[str, str]) -> bool:
    """Whether every one of these can be logged in to as it was told: a restarted container has another address, or
    another machine-id (kind), one that was made anew another key."""
    config = folder / "config"
    if not config.exists() or config.read_text() != _written(folder, _addresses(containers)):
        return False
    listed = (folder / "known_hosts").read_text().splitlines()
    return all(f"{name} {_shown(container)}" in listed for name, container in containers.items())


def _shown(container: str) -> str:
    """Its host key and its machine-id, as a line of known_hosts has them."""
    return out(["docker", "exec", container, "sh", "-c", SHOW], check=False)


def introduce(folder: Path, containers: Mapping[str, str]) -> None:
    """{name that the inventory calls: container}; leaves key, known_hosts and config in the folder."""
    public = _key(folder)

    def make(container: str) -> str:
        run(["docker", "exec", "-i", container, "bash", "-c", MAKE, "make", USER, PASSWORD], stdin=public)
        return _shown(container)

    with ThreadPoolExecutor(len(containers)) as pool:
        keys = dict(zip(containers, pool.map(make, containers.values()), strict=True))
    (folder / "known_hosts").write_text("".join(f"{name} {key}\n" for name, key in keys.items()))
    (folder / "config").write_text(_written(folder, _addresses(containers)))
