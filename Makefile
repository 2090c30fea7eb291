# Thin on purpose: every target is a script or a CMake preset that can also be run by itself.
MODEL  := models/SmolLM2-135M-Instruct.Q4_1.gguf
BUNDLE := models/smollm2-bundle

# The demo thinks 1,500 tokens past a window of 256.
DEMO := -p "Think aloud, step by step, about how a lighthouse keeper could measure the height of the tower." \
        --refresh carry --chunk 64 --window 256 -n 1756 --ignore-eos --temp 0.8 --seed 1

# ON or OFF: whether to build spool-train, which needs LibTorch (200 MB, 2 GB with CUDA).
TRAIN ?= ON
export SPOOL_TRAIN := $(TRAIN)

.PHONY: build demo test lint format check-format model embedder bench clean help
.NOTPARALLEL:

build: ## build/bin/spool and build/bin/spool-train (TRAIN=OFF leaves it out); the first time this also builds llama.cpp, for about 15 minutes on two cores
	scripts/deps build
	cmake --preset release -DSPOOL_BUILD_TRAIN=$(TRAIN)
	cmake --build --preset release

demo: build model ## the default model thinks on past its window
	build/bin/spool run -m $(MODEL) --bundle $(BUNDLE) $(DEMO)
	@echo; echo "model:  $(MODEL)"; echo "bundle: $(BUNDLE)"

test: check-format build model embedder ## everything a change has to pass: layout, build, tests, clang-tidy, installation, clients
	ctest --preset release
	scripts/lint tidy
	scripts/test-install
	scripts/test-clients

lint: check-format build ## layout and clang-tidy
	scripts/lint tidy

check-format:
	scripts/deps
	scripts/lint format

format: ## rewrite every source file in the layout of .clang-format
	scripts/deps
	scripts/lint format --fix

model: ## fetch the default model into models/
	scripts/fetch-model

embedder: build ## fetch and convert the text embedder into models/ (for /v1/embeddings)
	scripts/fetch-model embedder

bench: build model ## the table of docs/benchmarks.md
	build/bin/spool bench -m $(MODEL) --bundle $(BUNDLE) --peer "$$(sed -n 's/^LLAMA_SIMPLE:FILEPATH=//p' build/CMakeCache.txt)"

clean: ## remove the build folders; llama.cpp's build and the downloads stay in the cache folder
	rm -rf build build-debug build-asan-ubsan build-tsan

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
