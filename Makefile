# make help lists the habits. CMake does the building; this file names what people do.
BUILD ?= build/release
comma := ,
FUZZ_CC ?= clang-14
JOBS ?= $(shell nproc)
CCACHE := $(if $(shell command -v ccache),-DCMAKE_C_COMPILER_LAUNCHER=ccache)
GENERATOR := $(if $(shell command -v ninja),-G Ninja)
CONFIGURE = cmake -S . -B $(1) $(GENERATOR) $(CCACHE) $(2) >/dev/null
MAKEFLAGS += --no-print-directory

## all: build the library, the command line and the tests
all:
	@$(call CONFIGURE,$(BUILD),-DOXGEN_TESTS=ON)
	@cmake --build $(BUILD) -j $(JOBS)
## cuda: build liboxgen_cuda.so and its tests, also where no GPU is (ARCHS=90a-real for one architecture)
cuda:
	@$(call CONFIGURE,$(BUILD),$(if $(ARCHS),-DOXGEN_CUDA_ARCHS=$(ARCHS)))
	@cmake --build $(BUILD) -j $(JOBS) --target oxgen_cuda cuda_rows
## app: build the command line only (no test packages needed)
app:
	@$(call CONFIGURE,$(BUILD),-DOXGEN_TESTS=OFF)
	@cmake --build $(BUILD) -j $(JOBS) --target oxgen_cli
## demo: build, fetch a small model, chat with it; MODEL=path uses yours
demo:
	@tools/demo
## test: everything that needs no GPU (quick + ONNX node tests + end to end), totals on the last line
test: test-packages all
	@tools/run-tests --build $(BUILD) --python "$$(tools/venv)" --model "$$(tools/get-model build/models)"
## test-all: test + whole models against transformers (several GB of Python packages)
test-all: test-packages all
	@tools/run-tests --all --build $(BUILD) --python "$$(tools/venv tools/requirements-all.txt)" --model "$$(tools/get-model build/models)"
test-packages:
	@tools/need-packages gcc g++ make cmake pkg-config libc6-dev libpcre2-dev libutf8proc-dev libedit-dev libcmocka-dev groff-base python3-venv
## quick: unit tests and every kernel row on every tier of this machine (under a minute)
quick: all
	@ctest --test-dir $(BUILD) -L quick -j $(JOBS) --output-on-failure | tail -n 40
## ktest: kernels against their references; FAMILY=name restricts
ktest: all
	@$(BUILD)/tests/ktest $(FAMILY)
## torture: random kernel tests until every family has compared CASES outputs (FAMILY=name restricts)
CASES ?= 100000
torture: all
	@nice $(BUILD)/tests/ktest $(or $(FAMILY),all) $$(od -An -N4 -tu4 /dev/urandom) $(CASES)
## tiers: the kernel tests on an emulated CPU without AVX-512: no row uses what its tier lacks
tiers: all
	@tools/need-packages qemu-user
	@KTEST_BANDS=1 nice qemu-x86_64 -cpu Haswell $(BUILD)/tests/ktest $(or $(FAMILY),all)
## tsan: the team and a short generate under the thread sanitizer (MODEL=path)
tsan:
	@$(call CONFIGURE,build/tsan,-DOXGEN_SANITIZE=thread -DCMAKE_BUILD_TYPE=Debug)
	@cmake --build build/tsan -j $(JOBS) --target test.base.team oxgen_cli
	@build/tsan/tests/test.base.team
	@model=$(or $(MODEL),$$(tools/get-model build/models)); \
	  build/tsan/oxgen generate $$model "The capital of France is" -n 4 --threads 4
## check: layers, symbols, sizes, names, public headers, formatting; all of them run, then the verdict
check: all
	@bad=0; for c in layers "symbols $(BUILD)/liboxgen.a" style headers format; do \
	  tools/check-$$c || { echo "check: $${c%% *} failed"; bad=1; }; done; \
	  [ $$bad = 0 ] && echo "check: ok"
## format: rewrite the C files as the check wants them
format:
	@tools/check-format --fix
## tidy: clang-tidy at zero, kernels' instruction-set files left out; what passed is kept by content
tidy: all
	@tools/tidy --jobs $(JOBS) $(BUILD)
## asan: unit tests under address and undefined-behaviour sanitizers
asan:
	@$(MAKE) BUILD=build/asan all-asan
	@ctest --test-dir build/asan -L quick -j $(JOBS) --output-on-failure | tail -n 40
all-asan:
	@$(call CONFIGURE,build/asan,-DOXGEN_SANITIZE=address$(comma)undefined -DCMAKE_BUILD_TYPE=Debug)
	@cmake --build build/asan -j $(JOBS)
## cover: which lines and branches the tests reach; HTML in build/cover/report, the total on the last line (COVER=--quick: unit tests only)
cover: test-packages
	@$(call CONFIGURE,build/cover,-DOXGEN_COVERAGE=ON -DOXGEN_CUDA=OFF -DCMAKE_BUILD_TYPE=Debug)
	@cmake --build build/cover -j $(JOBS)
	@py="$$(tools/venv tools/requirements-cover.txt)"; tools/cover --build build/cover --python "$$py" --gcovr "$$(dirname "$$py")/gcovr" \
	  --model "$$(tools/get-model build/models)" $(COVER)

PYTHON ?= build/venv/bin/python
NODE_TESTS ?= build/node-tests
## test-gpu: everything that needs a GPU: kernel rows under compute-sanitizer, whole models against the CPU (PYTHON has numpy)
GPU_MODELS ?= build/gpu-models
test-gpu: all cuda
	@mkdir -p $(GPU_MODELS)
	@for s in llama qwen2 qwen3 gemma3 phi3 glm; do test -d $(GPU_MODELS)/$$s || $(BUILD)/tools/synth tiny-$$s -o $(GPU_MODELS)/$$s >/dev/null; done
	@$(or $(wildcard $(PYTHON)),python3) tests/gpu/test_gpu.py --oxgen $(BUILD)/oxgen --rows $(BUILD)/tests/cuda_rows \
	  --synth $(BUILD)/tools/synth --models $(GPU_MODELS) --sanitizer

## node-tests: the ONNX project's operator tests (PYTHON has the onnx package; NODE_TESTS= their folder)
node-tests: all
	@test -d $(NODE_TESTS) || $(PYTHON) tools/gen_node_tests.py $(NODE_TESTS)
	@$(BUILD)/tests/node_tests $(NODE_TESTS)

## install: into PREFIX (default /usr/local), below DESTDIR when set
PREFIX ?= /usr/local
install:
	@$(call CONFIGURE,$(BUILD),-DCMAKE_INSTALL_PREFIX=$(PREFIX))
	@cmake --build $(BUILD) -j $(JOBS)
	@DESTDIR=$(DESTDIR) cmake --install $(BUILD) >/dev/null && echo "installed into $(DESTDIR)$(PREFIX)"
## dist: a source and a binary archive in build/dist
dist: all
	@tools/dist $(BUILD)
## bench: build the measuring programs into $(BUILD)/bench
.PHONY: bench
bench: all
	@cmake --build $(BUILD) --target bench -j $(JOBS)

## fuzz: TARGET=name SECONDS=n runs one fuzz target (clang); findings land in build/fuzz/found
SECONDS ?= 60
fuzz:
	@[ -n "$(TARGET)" ] || { echo "make fuzz TARGET=name [SECONDS=n]; targets:"; ls tests/fuzz | grep -v '\.c$$'; exit 2; }
	@CC=$(FUZZ_CC) $(call CONFIGURE,build/fuzz,-DOXGEN_FUZZER=ON -DOXGEN_SANITIZE=address$(comma)undefined)
	@cmake --build build/fuzz -j $(JOBS) --target fuzz.$(TARGET)
	@mkdir -p build/fuzz/corpus/$(TARGET) build/fuzz/found
	@nice build/fuzz/tests/fuzz.$(TARGET) -max_total_time=$(SECONDS) -max_len=65536 -timeout=10 -rss_limit_mb=2048 \
	  -print_final_stats=1 -artifact_prefix=build/fuzz/found/$(TARGET)- build/fuzz/corpus/$(TARGET) tests/fuzz/$(TARGET)

## figures: measure every number that README and docs quote (LLAMA_BENCH=path pairs with llama-bench; PARTS="speed load ..."; REPEAT=5)
REPEAT ?= 5
figures: all
	@tools/figures --oxgen $(BUILD)/oxgen -r $(REPEAT) $(if $(MODEL),--model $(MODEL)) $(PARTS)

## regress: BASE=ref: is this tree slower than that one? Builds both, measures them in turns (REGRESS="--blocks 20 ...")
regress:
	@[ -n "$(BASE)" ] || { echo "make regress BASE=GIT-REF"; exit 2; }
	@tools/regress --base-ref $(BASE) -o build/regress.md --json build/regress.json $(REGRESS); code=$$?; \
	  [ ! -f build/regress.md ] || echo "report: build/regress.md"; exit $$code

## clean: remove build output
clean:
	@rm -rf build
## help: this list
help:
	@sed -n 's/^## //p' $(MAKEFILE_LIST) | awk -F': ' '{ printf "  %-12s %s\n", $$1, $$2 }'
.PHONY: test-gpu cuda all app demo test test-all test-packages quick ktest check format tidy asan all-asan node-tests install dist bench torture tiers tsan fuzz figures regress cover clean help
