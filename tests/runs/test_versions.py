from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dslint.runs.versions import KnownVersion, find_version, installed_version

Write = Callable[[str, str], None]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes files into a repository that is the current folder."""
    repository = tmp_path / "repository"
    (repository / ".git").mkdir(parents=True)
    monkeypatch.chdir(repository)

    def put(name: str, text: str) -> None:
        path = repository / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    return put


def found(near: str = "ds.json") -> KnownVersion:
    version = find_version(near)
    assert version is not None
    return version


def summary(near: str = "ds.json") -> tuple[str, bool]:
    version = found(near)
    return version.release.text, version.exact


@pytest.mark.parametrize(
    ("line", "release", "exact"),
    [
        ("deepspeed==0.14.0", "0.14.0", True),
        ("DeepSpeed == 0.14.0  # why", "0.14.0", True),
        ("deepspeed===0.14.0", "0.14.0", True),
        ("deepspeed==0.14.0+cu121", "0.14.0+cu121", True),
        ("deepspeed[sparse,autotuning]==0.14.0", "0.14.0", True),
        ("deepspeed==0.14.0; sys_platform == 'linux'", "0.14.0", True),
        ("deepspeed==0.14.0 --hash=sha256:abc", "0.14.0", True),
        ("deepspeed==0.14.0 \\", "0.14.0", True),
        ("deepspeed (==0.14.0)", "0.14.0", True),
        ("deepspeed", "0.19.8", False),
        ("deepspeed>=0.12", "0.19.8", False),
        ("deepspeed!=0.19.8", "0.19.7", False),
        ("deepspeed>=0.12,<0.15", "0.14.5", False),
        ("deepspeed~=0.16.0", "0.16.9", False),
        ("deepspeed==0.13.*", "0.13.5", False),
        ("deepspeed<0.9", "0.8.3", False),
        ("deepspeed<=0.12.6", "0.12.6", False),
        ("deepspeed>=0.25", "0.25.0", False),
        ("deepspeed==99.1", "99.1", True),
    ],
)
def test_a_requirement_tells_the_release(write: Write, line: str, release: str, exact: bool) -> None:
    write("requirements.txt", f"torch\n{line}\n")
    assert summary() == (release, exact)


@pytest.mark.parametrize(
    "line",
    [
        "deepspeed @ git+https://github.com/deepspeedai/DeepSpeed.git@master",
        "deepspeed[x]@ https://example.com/deepspeed-0.14.0.whl",
        "# deepspeed==0.14.0",
        "deepspeed-mii==0.2.0",
        "deepspeed_kernels==0.1",
        "mydeepspeed==0.1",
        "deepspeed>=banana",
        "deepspeed<0.1",
        "git+https://github.com/microsoft/DeepSpeed.git#egg=deepspeed",
    ],
)
def test_a_line_that_tells_no_release_gives_none(write: Write, line: str) -> None:
    write("requirements.txt", line)
    assert find_version("ds.json") is None


def test_the_place_is_named_with_line_and_text(write: Write) -> None:
    write("requirements.txt", "torch\n\ndeepspeed>=0.12  # newer is fine\n")
    version = found()
    assert version.where == "requirements.txt:3 `deepspeed>=0.12`"
    assert (version.path, version.line) == ("requirements.txt", 3)


def test_a_place_outside_the_current_folder_has_its_full_path(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("requirements.txt", "deepspeed==0.14.0")
    write("configs/ds.json", "{}")
    root = Path.cwd()
    monkeypatch.chdir("configs")
    assert found().path == str(root / "requirements.txt")


def test_the_nearest_folder_decides(write: Write) -> None:
    write("uv.lock", '[[package]]\nname = "deepspeed"\nversion = "0.15.0"\n')
    write("examples/a/requirements.txt", "deepspeed>=0.12,<0.13")
    assert summary("examples/a/configs/ds.json") == ("0.12.6", False)
    assert summary("examples/b/ds.json") == ("0.15.0", True)


def test_the_search_ends_at_the_root_of_the_repository(write: Write) -> None:
    write("../requirements.txt", "deepspeed==0.14.0")
    assert find_version("ds.json") is None


def test_the_search_outside_a_repository_ends_after_six_parents(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("deepspeed==0.14.0")
    assert find_version(str(tmp_path / "1/2/3/4/5/6/ds.json")) is not None
    assert find_version(str(tmp_path / "1/2/3/4/5/6/7/ds.json")) is None


def test_files_of_one_folder_are_trusted_in_order(write: Write) -> None:
    write("environment.yml", "dependencies:\n  - deepspeed=0.11.0\n")
    assert summary() == ("0.11.0", True)
    write("setup.py", "setup(install_requires=['torch', 'deepspeed==0.12.0'])\n")
    assert summary() == ("0.12.0", True)
    write("pyproject.toml", '[project]\ndependencies = ["deepspeed==0.13.0"]\n')
    assert summary() == ("0.13.0", True)
    write("requirements/train.txt", "deepspeed==0.14.0\n")
    assert summary() == ("0.14.0", True)
    write("requirements.txt", "deepspeed==0.15.0\n")
    assert summary() == ("0.15.0", True)
    write("poetry.lock", '[[package]]\nname = "deepspeed"\nversion = "0.16.0"\n')
    assert summary() == ("0.16.0", True)


def test_a_pin_counts_more_than_a_range_in_files_of_one_kind(write: Write) -> None:
    write("requirements.txt", "deepspeed>=0.12\n")
    write("requirements-gpu.txt", "deepspeed==0.14.2\n")
    assert summary() == ("0.14.2", True)


def test_included_requirements_are_followed_one_level(write: Write) -> None:
    write("requirements.txt", "-r deps/base.in\n")
    write("deps/base.in", "-r more.in\ndeepspeed==0.14.0\n")
    assert summary() == ("0.14.0", True)
    write("deps/base.in", "-r more.in\n")
    write("deps/more.in", "deepspeed==0.13.0\n")
    assert find_version("ds.json") is None


def test_a_file_that_includes_itself_ends(write: Write) -> None:
    write("requirements.txt", "-r requirements.txt\n")
    assert find_version("ds.json") is None


def test_constraints_pin_too(write: Write) -> None:
    write("requirements.txt", "--constraint=pins.txt\ndeepspeed\n")
    write("pins.txt", "deepspeed==0.14.0\n")
    assert summary() == ("0.14.0", True)


UV_LOCK = """\
version = 1

[[package]]
name = "trainer"
version = "9.9.9"
dependencies = [
    { name = "deepspeed" },
]

[[package]]
name = "deepspeed"
version = "0.15.4"
source = { registry = "https://pypi.org/simple" }
dependencies = [
    { name = "einops" },
]

[[package]]
name = "deepspeed-kernels"
version = "0.1"
"""

PIPFILE_LOCK = """\
{
    "default": {
        "deepspeed": {
            "hashes": [
                "sha256:abc"
            ],
            "index": "pypi",
            "version": "==0.14.0"
        },
        "einops": {
            "version": "==0.7.0"
        }
    }
}
"""


@pytest.mark.parametrize("name", ["uv.lock", "poetry.lock", "pdm.lock"])
def test_a_toml_lock_file_tells_the_locked_release(write: Write, name: str) -> None:
    write(name, UV_LOCK)
    version = found()
    assert (version.release.text, version.exact, version.line) == ("0.15.4", True, 12)


def test_a_pipfile_lock_tells_the_locked_release(write: Write) -> None:
    write("Pipfile.lock", PIPFILE_LOCK)
    version = found()
    assert (version.release.text, version.exact, version.line) == ("0.14.0", True, 8)


PYPROJECT = """\
[build-system]
requires = ["hatchling", "deepspeed==0.1.0"]

[project]
name = "deepspeed"
keywords = ["deepspeed", "linter"]
dependencies = [
    "torch[opt]>=2.1",  # "deepspeed==0.2.0"
    # "deepspeed==0.3.0",
    {requirement}
]

[tool.other]
list = ["deepspeed==0.4.0"]
"""


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        ("\"deepspeed[x]>=0.12,<0.14 ; python_version < '3.12'\",", ("0.13.5", False)),
        ("'deepspeed==0.14.0'", ("0.14.0", True)),
        ('"einops", "deepspeed ~= 0.16.1"', ("0.16.9", False)),
    ],
)
def test_pyproject_dependencies_are_read(write: Write, requirement: str, expected: tuple[str, bool]) -> None:
    write("pyproject.toml", PYPROJECT.replace("{requirement}", requirement))
    assert summary() == expected


def test_pyproject_keywords_and_comments_are_no_dependencies(write: Write) -> None:
    write("pyproject.toml", PYPROJECT.replace("{requirement}", ""))
    assert find_version("ds.json") is None


@pytest.mark.parametrize(
    "text",
    [
        '[project]\noptional-dependencies.train = ["deepspeed==0.14.0"]',
        '[project.optional-dependencies]\ntrain = [\n  "deepspeed==0.14.0",\n]',
        '[project]\noptional-dependencies = { train = ["deepspeed==0.14.0"] }',
        '[dependency-groups]\ndev = ["deepspeed==0.14.0"]',
        '[tool.uv]\ndev-dependencies = ["deepspeed==0.14.0"]',
        '[tool.poetry.dependencies]\ndeepspeed = "0.14.0"',
        '[tool.poetry.dependencies]\ndeepspeed = "==0.14.0"  # pinned',
        '[tool.poetry.group.train.dependencies]\ndeepspeed = {version = "0.14.0", optional = true}',
    ],
)
def test_every_table_of_dependencies_is_known(write: Write, text: str) -> None:
    write("pyproject.toml", text)
    assert summary() == ("0.14.0", True)


@pytest.mark.parametrize(
    ("bound", "release"),
    [("^0.14.1", "0.14.5"), ("~0.16", "0.16.9"), ("~0.16.2", "0.16.9"), ("^0", "0.19.8"), ("*", "0.19.8")],
)
def test_poetrys_own_bounds_are_known(write: Write, bound: str, release: str) -> None:
    write("pyproject.toml", f'[tool.poetry.dependencies]\ndeepspeed = "{bound}"\n')
    assert summary() == (release, False)


def test_a_poetry_git_dependency_gives_none(write: Write) -> None:
    write("pyproject.toml", '[tool.poetry.dependencies]\ndeepspeed = {git = "https://example.com/x.git"}\n')
    assert find_version("ds.json") is None


def test_setup_py_is_read_line_by_line(write: Write) -> None:
    write("setup.py", 'extras["deepspeed"] = deps("deepspeed")\n_deps = [\n    "deepspeed>=0.9,<0.10",\n]\n')
    assert summary() == ("0.9.5", False)


def test_a_bare_name_in_setup_py_counts_alone_on_its_line(write: Write) -> None:
    write("setup.py", 'extras["deepspeed"] = 1\n')
    assert find_version("ds.json") is None
    write("setup.py", '    "deepspeed",\n')
    assert summary() == ("0.19.8", False)


@pytest.mark.parametrize(
    "text",
    [
        "[options]\ninstall_requires =\n    torch\n    deepspeed==0.14.0\n",
        "[options.extras_require]\ndeepspeed = deepspeed==0.14.0\n",
    ],
)
def test_setup_cfg_options_are_read(write: Write, text: str) -> None:
    write("setup.cfg", "[metadata]\nkeywords =\n    deepspeed\n" + text)
    assert summary() == ("0.14.0", True)


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("deepspeed=0.14.0", ("0.14.0", True)),
        ("conda-forge::deepspeed=0.14.0=py310_0", ("0.14.0", True)),
        ("deepspeed=0.14", ("0.14.5", False)),
        ("deepspeed>=0.12", ("0.19.8", False)),
        ("'deepspeed==0.14.0'", ("0.14.0", True)),
        ("deepspeed  # any", ("0.19.8", False)),
        ("pip:\n      - deepspeed==0.14.0", ("0.14.0", True)),
    ],
)
@pytest.mark.parametrize("name", ["environment.yml", "environment-gpu.yaml", "conda.yaml"])
def test_conda_environments_are_read(write: Write, name: str, item: str, expected: tuple[str, bool]) -> None:
    write(name, f"name: x\ndependencies:\n  - python=3.10\n  - {item}\n")
    assert summary() == expected


def test_odd_files_are_passed_over(write: Write) -> None:
    for name in ("uv.lock", "requirements.txt", "setup.py", "setup.cfg", "environment.yml"):
        Path(name).mkdir()
    Path("requirements-x.txt").write_bytes(b"\xff\xfe\x00deepspeed==0.1\n\x80\n")
    Path("requirements-y.txt").symlink_to("nowhere")
    write("requirements", "a file, not a folder")
    write("pyproject.toml", "[project\n]]]]\ndependencies = [[['\n= =\n\"")
    write("Pipfile.lock", '{"deepspeed": ')
    assert find_version("ds.json") is None


@pytest.mark.parametrize("near", ["", "-", "no/such/folder/ds.json", "\0", "x" * 5000])
def test_odd_paths_are_passed_over(write: Write, near: str) -> None:
    assert find_version(near) is None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("requirements.txt", "deepspeed" + " " * 60_000 + "!"),
        ("requirements.txt", "deepspeed==0.1" + "-dev" * 900 + "!"),
        ("pyproject.toml", "[project]\ndependencies = [" + '"deepspeed>=0.12", ' * 20_000),
        ("setup.py", "'" * 100_000),
    ],
)
def test_files_made_to_be_slow_are_not(write: Write, name: str, text: str) -> None:
    write(name, text)
    before = time.process_time()
    find_version("ds.json")
    assert time.process_time() - before < 2


def test_a_folder_stands_for_the_files_in_it(write: Write) -> None:
    write("configs/requirements.txt", "deepspeed==0.14.0")
    assert summary("configs") == ("0.14.0", True)


def test_the_installed_release_is_told_by_a_folder_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "deepspeed-0.16.4.dist-info"
    folder.mkdir()
    (tmp_path / "deepspeed_mii-0.3.0.dist-info").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "missing.zip"), str(tmp_path)])
    version = installed_version()
    assert version is not None
    assert (version.release.text, version.exact, version.path) == ("0.16.4", True, str(folder))


def test_nothing_installed_gives_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "deepspeed-broken.dist-info").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert installed_version() is None


def test_importing_the_module_loads_nothing_heavy() -> None:
    heavy = "{'importlib.metadata', 'packaging', 'glob'}"
    code = f"import sys, dslint.runs.versions; print({heavy} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"
