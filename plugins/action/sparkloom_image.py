from __future__ import annotations

import time
from pathlib import Path

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from sparkloom.site import ansible, image_pull, image_transfer
from sparkloom.site.store import follow
from sparkloom.site.store.remote import Remote

DOCUMENTATION = r"""
module: sparkloom_image
short_description: Ask one node's containerd for an image, or have it pulled or built
description:
  - Runs the images' program on the node. A pull and a build go on when the connection is lost and are found again.
options:
  program: {type: path, required: true, description: ["The program, as sparkloom_images made it."]}
  command: {type: str, required: true, choices: [look, pull, hold, held, bring, judge, build, built, take],
            description: [What to ask for.]}
  asked: {type: dict, required: true, description: ["The image, and where containerd may be."]}
  reference: {type: str, default: "", description: [What is pulled; empty where nothing is missing; with pull.]}
  seconds: {type: float, description: ["How long it may take; with pull, build, take, and each archive with bring."]}
  file: {type: str, description: ["An archive that lies on the node; with take."]}
  archives:
    type: list
    elements: dict
    default: []
    description: [What sparkloom_archives decided for this node; with bring.]
  digest: {type: str, description: [Under which it can be named then; with hold.]}
  retag: {type: bool, default: false, description: [Whether the tag is made to mean it too; with hold.]}
"""


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    _requires_connection = True
    required_if = (
        ("command", "pull", ("seconds",)),
        ("command", "bring", ("seconds",)),
        ("command", "build", ("seconds",)),
        ("command", "take", ("seconds", "file")),
        ("command", "hold", ("digest",)),
    )

    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        node, asked = str(task_vars["inventory_hostname"]), args["asked"]
        remote = Remote(
            node, lambda line, data: self._low_level_execute_command(line, in_data=data), Path(args["program"])
        )
        if args["command"] == "held":
            return {"answer": remote.ask("held", asked, bring=not self._task.check_mode)}
        if args["command"] == "bring":
            return self._bring(remote, args)
        if args["command"] in ("judge", "built"):
            return {"answer": remote.ask(args["command"], asked, bring=not self._task.check_mode)}
        if args["command"] == "build":
            return self._build(remote, args)
        if args["command"] == "take":
            transfer = image_transfer.Transfer(remote, asked["places"], args["seconds"], Display().display)
            return {"changed": True, "msg": transfer.take(args["file"], [{"image": asked["image"], "digest": ""}])}
        if args["command"] == "hold":
            answer = remote.ask("hold", {**asked, "digest": args["digest"], "retag": args["retag"]})
            return {"changed": bool(answer["changed"])}
        moved = self._pull(remote, args) if args["command"] == "pull" and args["reference"] else {}
        return moved if moved.get("failed") else {**moved, "answer": remote.ask("look", asked)}

    def _bring(self, remote: Remote, args: ansible.Data) -> ansible.Data:
        say, archives = Display().display, args["archives"]
        transfer = image_transfer.Transfer(remote, args["asked"]["places"], args["seconds"], say)
        if not self._task.check_mode:
            for archive in archives:
                say(transfer.bring(archive))
        return {"changed": bool(archives), "msg": ", ".join(archive["file"] for archive in archives)}

    def _pull(self, remote: Remote, args: ansible.Data) -> ansible.Data:
        begun, asked = time.monotonic(), {**args["asked"], "reference": args["reference"]}
        clock = image_pull.Clock(args["seconds"], lambda: time.monotonic() - begun)
        remote.ask("start", asked)
        status = follow.follow(remote.node, clock.on(lambda: dict(remote.ask("status", asked))), Display().display)
        done, text = status["state"] == "done", image_pull.ended(remote.node, args["reference"], status, clock.passed())
        Display().display(text) if done else None
        return {"failed": not done, "changed": done, "msg": text}

    def _build(self, remote: Remote, args: ansible.Data) -> ansible.Data:
        begun, asked = time.monotonic(), args["asked"]
        clock = image_pull.Clock(args["seconds"], lambda: time.monotonic() - begun, "image_build_seconds", "the build")
        remote.ask("build", asked)
        say, quiet = Display().display, {**asked, "context": {}}
        status = follow.follow(remote.node, clock.on(lambda: dict(remote.ask("building", quiet))), say)
        if status["state"] != "done":
            cause = status.get("cause") or "the build is gone; run this again"
            return {"failed": True, "msg": f"{remote.node}: {asked['image']} cannot be built: {cause}"}
        made = dict(remote.ask("publish", quiet))
        passed, size = follow.span(clock.passed()), made["size"] / 1e9
        text = f"{remote.node}: {asked['image']} is built, an archive of {size:.1f} GB, in {passed}"
        say(text)
        return {"changed": True, "msg": text, **made}
