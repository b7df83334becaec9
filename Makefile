.DEFAULT_GOAL := help
.PHONY: demo test test-more test-vm test-kills test-fuzz test-engines test-clients test-profiles lint setup clean help

demo:  ## the whole way on this machine: virtual rack, cluster, model, a streamed answer
	@testbed/face/demo.sh
test:  ## every test, on the virtual rack; ends with one pytest summary
	@testbed/face/test.sh
test-more:  ## the scenarios that make test has no hour for: K3s itself, its refusals, a foreign network, switch, a restarted node
	@testbed/face/test-more.sh
test-vm:  ## the fabric on virtual machines with a kernel of their own; not in make test (docs/real.md)
	@testbed/face/test-vm.sh
test-kills:  ## the long campaign: twenty runs killed by chance, each run again (make test does two)
	@testbed/face/test-kills.sh
test-fuzz:  ## the long campaigns: ten minutes of new dice for hypothesis, 100,000 hostile messages to each port of a rank
	@testbed/face/test-fuzz.sh
test-engines:  ## SGLang, vLLM and llama.cpp themselves on CPU, over the rails: what only an engine can say (2.1 GB to download, once)
	@testbed/face/test-engines.sh
test-clients:  ## other people's programs (openai, anthropic, llm, codex, opencode, claude, open-webui) ask the rack; writes docs/reference/clients.md
	@testbed/face/test-clients.sh
test-profiles:  ## every shipped profile served on the rack by its stand-in, one after the other (a minute each)
	@testbed/face/test-profiles.sh
lint:  ## ruff, mypy --strict, the floor plan, yamllint, ansible-lint, stale generated files
	@scripts/lint/lint.sh
setup:  ## .venv with everything that the controller needs (no-op when nothing changed)
	@scripts/setup/setup.sh
clean:  ## remove .venv, .build, build/ and the rack; keeps ~/.cache/sparkloom
	@testbed/face/clean.sh
help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile
