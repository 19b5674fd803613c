"""What is packaged, and the files that servers read: they parse, and what they name exists."""

import ast
import re
from pathlib import Path

import pytest
import yaml

import pullback
from pullback.cli import command
from pullback.explain import PAGES

ROOT = Path(__file__).parents[2]
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
NOX = ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TEMPLATES = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
SERVERS = [*WORKFLOWS, *TEMPLATES, *ROOT.glob("*.yml"), *ROOT.glob(".*.yaml"), ROOT / "CITATION.cff"]
EXTRAS = set(re.findall(r"^([a-z]+) = \[", PROJECT.split("[project.optional-dependencies]")[1], re.MULTILINE))


def read(path):
    class Loader(yaml.SafeLoader):
        """mkdocs.yml names a function of Python; it is read as its name."""

    Loader.add_multi_constructor("tag:yaml.org,2002:python/name:", lambda loader, suffix, node: suffix)
    return yaml.load(path.read_text(encoding="utf-8"), Loader)


def texts(data):
    """List every string in plain data."""
    if isinstance(data, dict):
        return [text for value in data.values() for text in texts(value)]
    if isinstance(data, list):
        return [text for value in data for text in texts(value)]
    return [data] if isinstance(data, str) else []


def constant(name):
    """Give a constant of the noxfile; nox itself is not needed."""
    found = [n.value for n in NOX.body if isinstance(n, ast.Assign) and n.targets[0].id == name]
    return ast.literal_eval(found[0])


def versions():
    return constant("VERSIONS")


def options(name):
    """List the options of one of our commands."""
    return {option for parameter in command().commands[name].params for option in parameter.opts}


def test_the_wheel_takes_every_page_that_is_explained():
    taken = dict(re.findall(r'^"(docs/[^"]+)" = "([^"]+)"$', PROJECT, re.MULTILINE))
    assert taken == {f"docs/{page}": f"pullback/pages/{page}" for page in PAGES.values()}
    assert all((ROOT / file).is_file() for file in taken)


@pytest.mark.parametrize("path", SERVERS, ids=lambda path: path.name)
def test_it_can_be_read(path):
    assert read(path)


@pytest.mark.parametrize("path", [*SERVERS, ROOT / "SECURITY.md"], ids=lambda path: path.name)
def test_commands_and_their_options_exist(path):
    for name, rest in re.findall(r"\bpullback (check|[a-z]+)\b([^\n`]*)", path.read_text(encoding="utf-8")):
        if name in command().commands:
            assert set(re.findall(r"(?<=\s)--[a-z-]+", rest)) <= options(name), rest


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_what_a_workflow_runs_exists(path):
    jobs = {node.name for node in NOX.body if isinstance(node, ast.FunctionDef)}
    for text in texts(read(path)):
        assert set(re.findall(r"nox --session \"?(\w+)", text)) <= jobs
        assert set(re.findall(r'"\.\[(\w+)\]"', text)) <= EXTRAS
        for script in re.findall(r"^\.ci/\w+", text):
            assert (ROOT / script).exists()


def test_a_workflow_has_no_more_rights_than_it_needs():
    for path in WORKFLOWS:
        data = read(path)
        assert data["permissions"] == {"contents": "read"}, path.name
        writes = {
            name for name, job in data["jobs"].items() if "write" in (job.get("permissions") or {}).values()
        }
        assert writes <= {"publish", "deploy"}, path.name


def test_the_matrix_is_the_table_of_the_noxfile():
    matrix = read(ROOT / ".github" / "workflows" / "tests.yml")["jobs"]["versions"]["strategy"]["matrix"]
    assert matrix["job"] == list(versions())
    for python, host, packages in versions().values():
        assert (ROOT / "tests" / "unit" / host).is_dir()
        assert python in ("3.10", "3.11", "3.12", "3.13")
        assert any(package.startswith(host) for package in packages)


def test_what_a_job_leaves_out_exists():
    for tests in (*constant("TOGETHER").values(), *constant("BEFORE").values()):
        for path, _, name in (test.partition("::") for test in tests):
            assert f"def {name.partition('[')[0]}" in (ROOT / path).read_text(encoding="utf-8")
    assert set(constant("BEFORE")) <= set(versions())
    for name in constant("READY"):
        assert (ROOT / "examples" / "gallery" / f"{name}.py").exists()


def test_the_oldest_versions_of_the_matrix_are_those_of_the_project():
    for host, package in (("tensorflow", "tensorflow"), ("jax", "jax"), ("torch", "torch")):
        (least,) = re.findall(rf'^{host} = \["{package}>=([\d.]+)"', PROJECT, re.MULTILINE)
        assert f"{host}-{least}" in versions()


def test_the_action_uses_the_inputs_that_it_has():
    action = read(ROOT / "action.yml")
    used = {name for text in texts(action["runs"]) for name in re.findall(r"\binputs\.(\w+)", text)}
    assert used == set(action["inputs"])
    for step in action["runs"]["steps"]:
        assert "${{" not in step.get("run", ""), "what a user gives reaches a shell by the environment only"
        for name in re.findall(r"pullback\[(\w+)\]", step.get("run", "")):
            assert name in EXTRAS


def test_the_hook_is_our_command():
    (hook,) = read(ROOT / ".pre-commit-hooks.yaml")
    program, name = hook["entry"].split()
    assert program == "pullback"
    assert name in command().commands
    assert hook["pass_filenames"] is False  # a file that is handed over would be run as a script


def test_our_own_hooks_run_tools_that_dev_installs():
    tools = PROJECT.split("\ndev = ")[1].split("\n")[0] + " python"
    for repository in read(ROOT / ".pre-commit-config.yaml")["repos"]:
        for hook in repository["hooks"]:
            assert hook["entry"].split()[0] in tools


def test_what_is_cited_is_this_version():
    cited = read(ROOT / "CITATION.cff")
    assert cited["version"] == pullback.__version__
    assert cited["license"] == re.search(r'^license = "([^"]+)"', PROJECT, re.MULTILINE)[1]


def test_the_security_page_says_of_every_command_what_it_executes():
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert [name for name in command().commands if f"`pullback {name}" not in page] == []


@pytest.mark.parametrize(
    "path", [path for path in TEMPLATES if path.stem != "config"], ids=lambda path: path.name
)
def test_a_template_asks_for_something(path):
    form = read(path)
    assert {"name", "description", "body"} <= set(form)
    fields = [field["id"] for field in form["body"]]
    assert len(set(fields)) == len(fields)
    assert any(field.get("validations", {}).get("required") for field in form["body"])
