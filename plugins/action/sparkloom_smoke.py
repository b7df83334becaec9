"""One streamed answer from rank 0: the proof that a served model serves."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from sparkloom import adapter, kube, smoke


class ActionModule(ActionBase):
    _requires_connection = False

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        args = adapter.plain(self._task.args)

        def work() -> dict[str, Any]:
            cluster = kube.Cluster.of(args["kubeconfig"], args["namespace"])

            def connect() -> Any:
                return cluster.connect(args["pod"], int(args["port"]), float(args["timeout"]))

            answer = smoke.ask(connect, lambda text: None, max_tokens=int(args["max_tokens"]))
            said = (answer.text or answer.reasoning).strip()
            figures = f"{answer.tokens} tokens at {answer.tokens_per_second:.1f} tok/s, first after"
            return {
                "answer": answer.as_dict(),
                "msg": f"{answer.model}: {said}\n({figures} {answer.first_token_ms:.0f} ms)",
            }

        return result | adapter.guarded(work)
