.DEFAULT_GOAL := help
.PHONY: demo test test-more test-vm test-kills test-fuzz test-engines test-clients test-profiles gpu-pack test-gpu lint setup clean help

demo:  ## virtual rack, cluster, three models that answer
	@testbed/face/demo.sh
test:  ## every test, on the virtual rack; one pytest summary
	@testbed/face/test.sh
test-more:  ## longer scenarios: K3s itself, refusals, restarts
	@testbed/face/test-more.sh
test-vm:  ## the fabric on virtual machines (docs/real.md)
	@testbed/face/test-vm.sh
test-kills:  ## twenty runs killed at random, each run again
	@testbed/face/test-kills.sh
test-fuzz:  ## ten minutes each of atheris and hypothesis; messages
	@testbed/face/test-fuzz.sh
test-engines:  ## SGLang, vLLM, llama.cpp on CPU (2.1 GB to download)
	@testbed/face/test-engines.sh
test-clients:  ## other people's client programs ask the rack
	@testbed/face/test-clients.sh
test-profiles:  ## every shipped profile served on the rack
	@testbed/face/test-profiles.sh
gpu-pack:  ## a folder for a machine with a GPU (docs/reference/gpu.md)
	@testbed/face/gpu-pack.sh
test-gpu:  ## a rendered rank on a GPU; skips what is not there
	@testbed/face/test-gpu.sh
lint:  ## style, types, layers, playbooks, generated files, pages
	@scripts/lint/lint.sh
setup:  ## .venv with everything that the controller needs
	@scripts/setup/setup.sh
clean:  ## remove .venv, .build, build/ and the rack; keep caches
	@testbed/face/clean.sh
help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' Makefile
