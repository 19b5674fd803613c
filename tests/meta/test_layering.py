"""A framework's name stands only where the plan of the house allows it."""

import ast
import functools
from pathlib import Path

import pytest

import pullback
from pullback import hosts

SOURCE = Path(pullback.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
FRAMEWORKS = {"tensorflow", "jax", "torch", "keras", "flax"}
NICKNAMES = FRAMEWORKS | {"tf", "jnp", "K"}
# in each, a part for every framework
ROOMS = ("hosts", "view", "record", "graphs", "watching", "recompute", "ops/linear")
KERNELS = {f"{name}.py" for name in ("tensorflow", "jax", "torch", "triton", "pallas")}
LIMIT = 350  # lines; about 120 is what a file should have


@functools.cache
def place(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


@functools.cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@functools.cache
def tree_of(code: str) -> ast.Module:
    """Read a file once for all tests of this one; nobody changes what is given."""
    return ast.parse(code)


def may_name_a_framework(path: Path) -> bool:
    rooms = (*(f"{room}/" for room in ROOMS), "keras/", "namespace.py")
    return place(path).startswith(rooms) or is_kernel(path)


def is_kernel(path: Path) -> bool:
    """Tell whether a file is what one framework does for a rule of `ops/` that has a folder."""
    parts = place(path).split("/")
    return len(parts) == 3 and parts[0] == "ops" and parts[2] in KERNELS


def imports(tree: ast.AST) -> list[str]:
    """List the modules that a file imports, wherever in it."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return found


def framework_names(code: str) -> set[str]:
    """List the frameworks that a file imports or names, outside of strings."""
    tree = tree_of(code)
    named = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return {name.split(".")[0] for name in imports(tree)} & FRAMEWORKS | named & NICKNAMES


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("import tensorflow as tf", {"tensorflow"}),
        ("def f():\n    from jax import numpy", {"jax"}),
        ("y = tf.exp(x)", {"tf"}),
        ("fix = 'import tensorflow as tf'", set()),
        ("from pullback.keras import place", set()),
    ],
)
def test_the_test_sees_frameworks(code, names):
    assert framework_names(code) == names


def test_frameworks_are_named_only_in_hosts():
    named = {place(path): framework_names(text_of(path)) for path in FILES if not may_name_a_framework(path)}
    assert {path: names for path, names in named.items() if names} == {}


def test_a_host_is_imported_by_nobody_else():
    found = [
        (place(path), module)
        for path in FILES
        for module in imports(tree_of(text_of(path)))
        for host in hosts.SUPPORTED
        if module.startswith(f"pullback.hosts.{host}")
        and not place(path).startswith(tuple(f"{room}/{host}" for room in ROOMS))
    ]
    assert found == []


def listed(code: str) -> list[set[str]]:
    """List the frameworks that stand together in a literal: a list of them by hand."""
    displays = [
        node
        for node in ast.walk(tree_of(code))
        if isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict)
    ]
    parts = [node.keys if isinstance(node, ast.Dict) else node.elts for node in displays]
    found = [
        {part.value for part in each if isinstance(part, ast.Constant)} & set(hosts.SUPPORTED)
        for each in parts
    ]
    return [names for names in found if len(names) > 1]


def test_the_test_sees_lists_of_frameworks():
    assert (
        listed('A = ("jax", "torch", 1)\nB = {"jax": "torch"}\nC = {"jax": 1, "torch": 2}')
        == [{"jax", "torch"}] * 2
    )


def test_frameworks_are_listed_in_one_place():
    """A new one is a row of `hosts.SUPPORTED`; who writes a file of TensorBoard is another question."""
    found = {place(path) for path in FILES if listed(text_of(path))}
    assert found == {"hosts/__init__.py", "watching/sinks/tensorboard.py"}


# ── private names of frameworks ──────────────────────────────────────────────────────────────────────────

PRIVATE = {
    "tensorflow": "hosts/tensorflow/private.py",
    "torch": "hosts/torch/private.py",
    "jax": "",  # none is needed
    "keras": "hosts/jax/model.py",
}


def is_private(name: str) -> bool:
    """Tell whether a dotted name goes through something that its framework does not export."""
    parts = name.split(".")
    hidden = any(part.startswith("_") and not part.startswith("__") for part in parts[1:])
    return hidden or parts[:2] in (["tensorflow", "python"], ["keras", "src"])


def dotted(node: ast.AST) -> list[str]:
    """Give the names of a chain of attributes, from its root; nothing if the root is no name."""
    if isinstance(node, ast.Name):
        return [node.id]
    before = dotted(node.value) if isinstance(node, ast.Attribute) else []
    return [*before, node.attr] if before else []


def private_names(code: str) -> set[str]:
    """List the private names of frameworks that a file imports or reads."""
    tree = tree_of(code)
    bound = {}  # what a name in the file stands for
    found = set(imports(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.name if alias.asname else alias.name.split(".")[0]
                bound[alias.asname or name] = name
        elif isinstance(node, ast.ImportFrom):
            bound |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    for node in ast.walk(tree):
        names = dotted(node) if isinstance(node, ast.Attribute) else []
        if names and names[0] in bound:
            found.add(".".join([bound[names[0]], *names[1:]]))
    return {name for name in found if name.split(".")[0] in PRIVATE and is_private(name)}


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("import torch\ntorch._C.f()", {"torch._C", "torch._C.f"}),
        ("from torch.autograd import forward_ad as ad\nad._level", {"torch.autograd.forward_ad._level"}),
        ("def f():\n    import torch._dynamo", {"torch._dynamo"}),
        ("from jax._src import core", {"jax._src", "jax._src.core"}),
        ("from tensorflow.python import ops", {"tensorflow.python", "tensorflow.python.ops"}),
        ("import torch\nx = torch.ones(3)\nx._version, torch.__version__", set()),
        ("import jax.extend\njax.extend.core.Primitive", set()),
    ],
)
def test_the_test_sees_private_names(code, names):
    assert private_names(code) == names


def test_private_names_of_a_framework_stand_in_one_file():
    found = [(place(path), name) for path in FILES for name in private_names(text_of(path))]
    assert [(path, name) for path, name in found if path != PRIVATE[name.split(".")[0]]] == []


# ── who imports whom ─────────────────────────────────────────────────────────────────────────────────────

BELOW_HOSTS = {"errors", "rule", "tree", "dtypes", "patched", "hosts"}


def module_of(path: Path) -> str:
    return ".".join(("pullback", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")


MODULES = {module_of(path): path for path in FILES}


@functools.cache
def imported_by(path: Path) -> set[str]:
    """List the modules of ours that a file imports, wherever in it; not those for types alone.

    The package that a module stands in is not counted: it is imported before anything in it.
    """
    tree = ast.parse(text_of(path))  # changed below
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and getattr(node.test, "id", "") in ("TYPE_CHECKING", "_CHECKING_TYPES"):
            node.body = []
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= whole & MODULES.keys() or {node.module}
    return found & MODULES.keys() - {module_of(path)}


def test_hosts_import_nothing_above_them():
    files = [path for path in FILES if place(path).startswith("hosts/")]
    found = [(place(path), module) for path in files for module in imported_by(path)]
    assert [(path, module) for path, module in found if module.split(".")[1] not in BELOW_HOSTS] == []
    others = [SOURCE / f"{name}.py" for name in BELOW_HOSTS - {"hosts", "tree"}]
    assert [(place(path), imported_by(path)) for path in others if imported_by(path)] == []
    assert imported_by(SOURCE / "tree.py") == {"pullback.hosts"}  # which opens structures of a framework


def test_captured_tensors_are_looked_for_in_one_place():
    """What a body reaches by name is followed by `captures` of each host, a file or a folder."""
    ways = {f"pullback.rule.{name}" for name in ("cells", "reach", "global_names", "names_in")}
    files = [
        path for path in FILES if place(path).startswith(tuple(f"hosts/{host}/" for host in hosts.SUPPORTED))
    ]
    found = {place(path) for path in files if ways & set(imports(tree_of(text_of(path))))}
    assert {path for path in found if "/captures" not in path} == {
        "hosts/jax/override.py"
    }  # a gradient's own


# A job that several hosts have, in a file or a folder of its name; what only one has is not listed.
JOBS = {
    "arrays": "tensorflow jax torch",
    "batched": "tensorflow jax torch",
    "callback": "tensorflow jax torch",
    "captures": "tensorflow jax torch",
    "control": "tensorflow jax torch",
    "eager": "tensorflow torch",
    "effects": "tensorflow torch",
    "forward": "tensorflow jax torch",
    "inline": "tensorflow jax",
    "kinds": "tensorflow jax torch",
    "linearity": "tensorflow jax",
    "model": "tensorflow jax torch",
    "override": "tensorflow jax torch",
    "pinned": "tensorflow torch",
    "private": "tensorflow torch",
    "residuals": "jax torch",
    "run": "tensorflow jax torch",
}


def test_the_same_job_has_the_same_name_on_every_host():
    stems = {
        host: {path.stem for path in (SOURCE / "hosts" / host).iterdir()} - {"__init__"}
        for host in hosts.SUPPORTED
    }
    shared = {
        stem for names in stems.values() for stem in names if sum(stem in n for n in stems.values()) > 1
    }
    found = {
        stem: " ".join(host for host in stems if stem in stems[host]) for stem in shared - {"__pycache__"}
    }
    assert found == JOBS


def cycles(edges: dict[str, set[str]]) -> list[set[str]]:
    """List the groups of modules that import each other, through others or not."""

    def reached(module: str) -> set[str]:
        seen, waiting = set(), [module]
        while waiting:
            new = edges[waiting.pop()] - seen
            seen |= new
            waiting += new
        return seen

    reach = {module: reached(module) for module in edges}
    groups = [{other for other in reach[module] if module in reach[other]} for module in sorted(edges)]
    return [group for i, group in enumerate(groups) if group and group not in groups[:i]]


def test_the_test_sees_cycles():
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [{"b", "c"}]


def test_no_module_imports_itself_through_others():
    assert cycles({module: imported_by(path) for module, path in MODULES.items()}) == []


def test_no_monster_file():
    lengths = {place(path): len(text_of(path).splitlines()) for path in FILES}
    assert {path: length for path, length in lengths.items() if length > LIMIT} == {}


def test_every_file_says_what_it_is():
    assert [place(path) for path in FILES if not ast.get_docstring(tree_of(text_of(path)))] == []
