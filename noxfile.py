"""Jobs that take long or need an environment of their own; the tests of every day need none of them."""

import glob
import os

import nox


@nox.session
def wild(session: nox.Session) -> None:
    """Check programs over public packages, and make the table in docs/wild.md."""
    session.install("-e", ".[test]")
    session.install("--no-deps", "-r", "tests/wild/requirements.txt")
    session.run("python", "tests/wild/run.py", *(session.posargs or ["--write"]))


TABLES = ("opinfo", "jax_table", "tensorflow_table", "keras_table")


@nox.session
@nox.parametrize("table", TABLES, ids=TABLES)
def tables(session: nox.Session, table: str) -> None:
    """Check a framework's own functions, at all samples of the table, and make its line in docs/tables.md."""
    session.install("-e", ".[test]")
    session.run("python", "-W", "ignore", "tests/tables/driver.py", table, *(session.posargs or ["--write"]))


@nox.session
def generated(session: nox.Session) -> None:
    """Check two thousand generated rules a host, and two thousand of further shapes, whose truth is known."""
    session.install("-e", ".[test]")
    for host in session.posargs or ("PyTorch", "TensorFlow", "JAX"):
        for shapes in ([], ["--wider"]):
            session.run("python", "-W", "ignore", "tests/generated/many.py", host, *shapes)


@nox.session
def seeds(session: nox.Session) -> None:
    """Check the rules of the zoo at twenty seeds: a verdict does not depend on one."""
    session.install("-e", ".[test]")
    for host in session.posargs or ("PyTorch", "JAX", "TensorFlow"):
        session.run("python", "-W", "ignore", "tests/wrong/seeds.py", host)


@nox.session
def kernels(session: nox.Session) -> None:
    """Run the kernel of Triton on a processor, interpreted, beside the plain way."""
    session.install("-e", ".[torch]", "pytest>=8", "torch==2.13.0", "triton>=3.3")
    session.run("python", "-m", "pytest", "tests/kernels", *session.posargs, env={"TRITON_INTERPRET": "1"})


@nox.session
def wheel(session: nox.Session) -> None:
    """Build the source distribution and the wheel, and try the wheel where nothing else is installed."""
    session.install("build", "hatchling>=1.24")
    session.run("python", "tests/wheel/driver.py", *session.posargs)


# Each host alone, with one version of everything: Python, the framework, what else is pinned. Two to three
# minutes of CPU time each. The newest versions are those of the newest Python: JAX leaves older ones behind.
VERSIONS = {
    "tensorflow-2.16": ("3.11", "tensorflow", ["tensorflow-cpu==2.16.2", "numpy==1.26.4"]),
    "tensorflow-newest": ("3.13", "tensorflow", ["tensorflow-cpu"]),
    "tensorflow-python-3.10": ("3.10", "tensorflow", ["tensorflow-cpu"]),
    "tensorflow-python-3.12": ("3.12", "tensorflow", ["tensorflow-cpu"]),
    "jax-0.9": ("3.11", "jax", ["jax[cpu]==0.9.0"]),
    "jax-newest": ("3.13", "jax", ["jax[cpu]"]),
    "jax-python-3.11": ("3.11", "jax", ["jax[cpu]"]),
    "jax-python-3.12": ("3.12", "jax", ["jax[cpu]"]),
    "torch-2.6": ("3.13", "torch", ["torch==2.6.0"]),
    "torch-newest": ("3.13", "torch", ["torch"]),
    "torch-numpy-1.26": ("3.11", "torch", ["torch", "numpy==1.26.4"]),
    "torch-python-3.10": ("3.10", "torch", ["torch"]),
    "torch-python-3.12": ("3.12", "torch", ["torch"]),
}
# What the tests of a host use beside it (jax.export needs flatbuffers), and those that need a second host.
BESIDE = {
    "tensorflow": [],
    "jax": ["equinox>=0.11", "flatbuffers>=24"],
    "torch": ["array-api-compat>=1.10", "ml-dtypes>=0.3"],
}
TOGETHER = {
    "tensorflow": [],
    "jax": ["tests/unit/jax/test_arguments.py::test_two_frameworks_in_one_call_are_refused"],
    "torch": [
        "tests/unit/torch/test_operator.py::test_a_body_of_another_framework_is_refused",
        "tests/unit/torch/test_shortcut.py::test_one_of_another_framework_keeps_no_rule_from_it",
    ],
}
# What a job leaves out: PyTorch's compiler knows no `id` of functions in 2.6. Rules run uncompiled there, and
# PyTorch refuses a single graph of them, as a strict export asks for.
BEFORE = {
    "torch-2.6": [
        "tests/unit/torch/test_compile.py",
        "tests/unit/torch/test_compile_errors.py",
        "tests/unit/torch/test_compile_state.py",
        "tests/unit/torch/test_export.py::test_the_values_are_right_and_the_gradient_is_not_dropped_without_a_word[True]",
        "tests/unit/torch/test_export.py::test_modules_and_structures_are_exported_or_refused_by_name",
        "tests/unit/torch/test_export.py::test_an_operator_of_torch_library_keeps_its_own_checks_under_a_rule",
        "tests/unit/torch/test_operator.py::test_compiles_to_one_graph[inductor]",
    ]
}


@nox.session
@nox.parametrize("python,job", [(VERSIONS[job][0], job) for job in VERSIONS], ids=list(VERSIONS))
def versions(session: nox.Session, job: str) -> None:
    """Run the tests of one host, alone, with one version of everything."""
    _, host, packages = VERSIONS[job]
    session.install("-e", ".", "pytest>=8", "pytest-xdist>=3.6", *packages, *BESIDE[host])
    apart = [f"--deselect={test}" for test in TOGETHER[host] + BEFORE.get(job, [])]
    tests = session.posargs or [f"tests/unit/{host}", "tests/unit/core"]
    session.run("pullback", "doctor")
    session.run("python", "-m", "pytest", *apart, *tests)


READY = ("domain_adaptation", "large_vocabulary", "spiking_network")  # their rules are pullback's own


@nox.session
def gallery(session: nox.Session) -> None:
    """Run and check the gallery, draw its pictures anew, and write it as notebooks."""
    session.install("-e", ".[test,gallery]")
    programs = session.posargs or sorted(glob.glob("examples/gallery/*.py"))
    for program in programs:
        name = os.path.splitext(os.path.basename(program))[0]
        session.run("python", program, f"docs/images/gallery/{name}.png")
        session.run("pullback", "check", *(["--all"] if name in READY else []), program)
    session.run("python", "tests/examples/notebooks.py", "build/notebooks", *programs)
