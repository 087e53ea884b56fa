"""Bad input gets a clear message with its place; the other files are still checked; nothing is a traceback."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
GOOD = '{"train_micro_batch_size_per_gpu": 1}'


def run(folder: Path, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    done = subprocess.run(
        [sys.executable, "-m", "dslint", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"},
        input=stdin,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert b"Traceback" not in done.stdout + done.stderr
    assert b"internal error" not in done.stderr
    return done


def check(folder: Path, data: bytes, name: str = "ds_config.json", *options: str) -> dict[str, Any]:
    (folder / name).write_bytes(data)
    (folder / "good.json").write_text(GOOD)
    done = run(folder, "check", name, "good.json", "--deepspeed", "0.19.8", "--format", "json", *options)
    report: dict[str, Any] = json.loads(done.stdout)
    assert report["files"] >= 1, "the other file was not checked"
    assert done.returncode == (2 if report["errors"] else 1 if has_error(report) else 0)
    return report


def has_error(report: dict[str, Any]) -> bool:
    return any(finding["severity"] == "error" for finding in report["findings"])


def codes(report: dict[str, Any]) -> list[str]:
    return [finding["code"] for finding in report["findings"]]


def test_text_that_is_no_json(tmp_path: Path) -> None:
    report = check(tmp_path, b'{"train_micro_batch_size_per_gpu": 1')
    assert codes(report) == ["DS001"]
    assert (report["findings"][0]["line"], report["findings"][0]["column"]) == (1, 37)


def test_text_that_is_not_utf8(tmp_path: Path) -> None:
    report = check(tmp_path, b'{\n"a": "\xff"}')
    assert "not UTF-8" in report["errors"][0]["message"]
    assert "line 2" in report["errors"][0]["message"]


def test_an_empty_file(tmp_path: Path) -> None:
    assert codes(check(tmp_path, b"")) == ["DS206"]


def test_a_file_of_blanks_and_comments(tmp_path: Path) -> None:
    assert codes(check(tmp_path, b"\n\n  # nothing\n")) == ["DS206"]


def test_a_list_at_the_top(tmp_path: Path) -> None:
    assert codes(check(tmp_path, b"[1, 2]")) == ["DS007"]


@pytest.mark.parametrize("text", [b"null", b"3", b'"x"', b"true"])
def test_a_bare_value_at_the_top(tmp_path: Path, text: bytes) -> None:
    assert not has_error(check(tmp_path, text))


def test_a_missing_file(tmp_path: Path) -> None:
    done = run(tmp_path, "check", "missing.json")
    assert done.returncode == 2
    assert b"missing.json: no such file" in done.stderr


def test_a_folder_without_configs(tmp_path: Path) -> None:
    done = run(tmp_path, "check", ".")
    assert done.returncode == 0
    assert b"No findings in 0 files" in done.stdout


def test_a_folder_called_like_a_config(tmp_path: Path) -> None:
    (tmp_path / "ds_config.json").mkdir()
    assert run(tmp_path, "check", "ds_config.json").returncode == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "ds_config.json").write_text(GOOD)
    (tmp_path / "ds_config.json").chmod(0)
    done = run(tmp_path, "check", "ds_config.json")
    assert done.returncode == 2
    assert b"no permission" in done.stderr


def test_a_hundred_megabytes(tmp_path: Path) -> None:
    with open(tmp_path / "ds_config.json", "wb") as stream:
        stream.truncate(100 * 1024 * 1024)
    done = run(tmp_path, "check", "ds_config.json")
    assert done.returncode == 2
    assert b"larger than 16 MB" in done.stderr


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'{"zero_optimization":{"a":['])
def test_nesting_a_hundred_thousand_deep(tmp_path: Path, opening: bytes) -> None:
    report = check(tmp_path, opening * 100_000)
    assert codes(report) == ["DS001"]
    assert "nested more than" in report["findings"][0]["message"]


def test_not_a_number(tmp_path: Path) -> None:
    report = check(tmp_path, b'{"train_micro_batch_size_per_gpu": NaN\n}')
    assert codes(report) == ["DS016"]


def test_a_number_without_end(tmp_path: Path) -> None:
    assert codes(check(tmp_path, b'{"train_micro_batch_size_per_gpu": 1e999}')) == ["DS001"]
    assert codes(check(tmp_path, b'{"train_micro_batch_size_per_gpu": ' + b"9" * 5000 + b"}")) == ["DS001"]


def test_huge_numbers_are_computed_with(tmp_path: Path) -> None:
    data = b'{"train_batch_size": ' + b"7" * 300 + b', "train_micro_batch_size_per_gpu": 1e300}'
    assert check(tmp_path, data, "ds_config.json", "--gpus", "8")["files"] == 2


def test_duplicate_keys(tmp_path: Path) -> None:
    report = check(tmp_path, b'{"fp16": {}, "train_micro_batch_size_per_gpu": 1, "fp16": {}}')
    assert "DS002" in codes(report)
    assert report["findings"][0]["related"][0]["column"] == 2


def test_a_byte_order_mark_and_old_line_ends(tmp_path: Path) -> None:
    assert codes(check(tmp_path, b"\xef\xbb\xbf" + GOOD.encode())) == []
    report = check(tmp_path, b'{\r\n"train_micro_batch_size_per_gpu": 1,\r"zero_optimisation": {}\r\n}')
    assert [(f["code"], f["line"]) for f in report["findings"]] == [("DS011", 3)]


def test_control_characters_and_odd_names(tmp_path: Path) -> None:
    check(tmp_path, b'{"a\\u0000b": 1, "\\ud800": 2, "": 3, "train_micro_batch_size_per_gpu": 1}')
    check(tmp_path, b"\x00\x01\x02")


def test_a_yaml_alias_bomb(tmp_path: Path) -> None:
    bomb = b"deepspeed_config: &a [x, x, x, x, x, x, x, x, x, x]\n"
    names = b"abcdefghi"
    for before, name in itertools.pairwise(names):
        bomb += b"%c: &%c [%s]\n" % (name, name, b", ".join([b"*%c" % before] * 10))
    report = check(tmp_path, bomb, "accelerate.yaml")
    assert "accelerate.yaml" in report["errors"][0]["path"]


def test_yaml_with_code_is_not_run(tmp_path: Path) -> None:
    report = check(
        tmp_path, b"deepspeed_config: !!python/object/apply:os.system ['touch hacked']\n", "accelerate.yaml"
    )
    assert report["errors"]
    assert not (tmp_path / "hacked").exists()


def test_yaml_of_other_tools_is_left_alone(tmp_path: Path) -> None:
    report = check(tmp_path, b"{{- if .Values.x }}\na: [\n", "template.yaml")
    assert report["errors"] == []


def test_a_script_with_a_syntax_error_is_a_warning_at_its_place(tmp_path: Path) -> None:
    report = check(tmp_path, b"import deepspeed\ndef broken(:\n", "train.py")
    assert report["errors"] == []
    (finding,) = report["findings"]
    assert (finding["code"], finding["severity"], finding["line"]) == ("DS050", "warning", 2)


def test_a_script_that_is_not_utf8_is_named_with_its_place(tmp_path: Path) -> None:
    report = check(tmp_path, b"import deepspeed\n# \xff", "train.py")
    (trouble,) = report["errors"]
    assert "byte 19, line 2" in trouble["message"]


def test_a_shell_script_of_anything_is_read(tmp_path: Path) -> None:
    for data in (b"", b"\0\0", b"$(" * 5000, b"deepspeed 'train.py", b"if true; then", b"cat <<EOF\n"):
        report = check(tmp_path, data, "run.sh")
        assert report["errors"] == []


def test_standard_input(tmp_path: Path) -> None:
    done = run(tmp_path, "check", "-", "--deepspeed", "0.19.8", stdin=b'{"gradient_clipping": 1}')
    assert done.returncode == 1
    assert b"<stdin>:1:" in done.stdout


def test_a_broken_rule_file_is_named_with_its_place(tmp_path: Path) -> None:
    import shutil

    for name in ("dslint", "schemas", "rules"):
        shutil.copytree(ROOT / name, tmp_path / name)
    rule = tmp_path / "rules" / "batch" / "DS207-fractional-batch-size.yaml"
    rule.write_text(rule.read_text().replace("when: true", "when: writen(ranks)"))
    done = subprocess.run(
        [sys.executable, "-m", "dslint", "check", "."],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "DS207-fractional-batch-size.yaml:9:7: there is no function `writen`" in done.stderr
    assert "Traceback" not in done.stderr


def test_output_into_a_closed_pipe_is_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "ds_config.json").write_text(GOOD)
    command = f"'{sys.executable}' -m dslint rules | head -n 1"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
