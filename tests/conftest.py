"""What every test shares: quiet frameworks, and where JAX keeps what it compiled. It imports none of them."""

import gc
import importlib.util
import mmap
import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
# One process of tests for each core: more threads would only wait for each other.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
# JAX compiles every operation of every shape. Test processes share what was compiled (below), and so do the
# commands that one of them starts: JAX writes an entry in place, and who reads half of one warns.
# (Set, not proposed: the process that starts the others reads this file too, and they inherit what it set.)
CACHE = Path(__file__).parents[1] / ".cache" / "jax"
os.environ["JAX_COMPILATION_CACHE_DIR"] = str(CACHE / os.environ.get("PYTEST_XDIST_WORKER", "alone"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
# PyTorch's compiler collects garbage behind each function; with three frameworks in sight that takes longer.
os.environ.setdefault("TORCH_DYNAMO_RUN_GC_AFTER_COMPILE", "0")
QUICK = {
    "xla_backend_optimization_level": "0",
    "xla_cpu_use_fusion_emitters": "false",
    "xla_cpu_parallel_codegen_split_count": "1",
}


def xla_knows(flags):
    """Tell whether both compilers have these flags: one that does not ends the process."""
    for package, library in (("jaxlib", "libjax_common.so"), ("tensorflow", "libtensorflow_cc.so.2")):
        spec = importlib.util.find_spec(package)
        path = Path(spec.submodule_search_locations[0], library) if spec else None
        if path is None or not path.exists():
            return False
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as code:
            if any(code.find(flag.encode()) < 0 for flag in flags):
                return False
    return True


# Tests compile much and run little: half of the time of JAX's tests is optimising what runs once.
if "XLA_FLAGS" not in os.environ and xla_knows(QUICK):
    os.environ["XLA_FLAGS"] = " ".join(f"--{flag}={value}" for flag, value in QUICK.items())


# Tests that look for garbage collect it themselves; imports make much, and hardly any of it goes again.
gc.set_threshold(200_000, 20, 20)


def pytest_collection_finish(session):
    """Take what is there before the first test, and stays, out of the sight of the garbage collector.

    The frameworks and the tests are millions of objects, and a test that looks for leaks goes through them.
    """
    gc.collect()
    gc.freeze()
    if "jax" in sys.modules:
        from jax.experimental.compilation_cache import compilation_cache

        compilation_cache.reset_cache()
        sys.modules["jax"].config.update("jax_compilation_cache_dir", str(CACHE / "tests"))


COLLECTS = {"gc", "gain", "of_torch"}  # a name that such a file imports
_begun = set()


def pytest_runtest_setup(item):
    """Do the same before the first test of a file that collects: with what compilers keep, it is millions."""
    if item.path not in _begun and COLLECTS.intersection(vars(item.module)):
        _begun.add(item.path)
        gc.collect()
        gc.freeze()
