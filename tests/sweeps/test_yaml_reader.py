"""Strict YAML: every key and value has its line, and every trap ends with one message that names
it.
"""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeps.errors import did_you_mean
from sweeps.language.yaml_reader import MAX_NODES, SweepError, dotted, read


def problem(text: str) -> SweepError:
    """The error that reading `text` ends with."""
    with pytest.raises(SweepError) as caught:
        read("x.yaml", text)
    return caught.value


def test_values_and_their_lines() -> None:
    """Scalars keep the line they stand on; what spans lines keeps that of its key."""
    document = read("x.yaml", "a: 1\nb:\n  - 2\n  - {c: 0.5, d: text}\ne: |\n  several\n  lines\n")
    assert document.root == {"a": 1, "b": [2, {"c": 0.5, "d": "text"}], "e": "several\nlines\n"}
    lines = {dotted(path): line for path, line in document.lines.items() if path}
    assert lines == {"a": 1, "b": 2, "b[0]": 3, "b[1]": 4, "b[1].c": 4, "b[1].d": 4, "e": 5}


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("7", 7),
        (".5", 0.5),
        ("1.0e-3", 0.001),
        ("true", True),
        ("", None),
        ('"no"', "no"),
        ("'1e-3'", "1e-3"),
        ("10s", "10s"),
        ("deit_tiny_patch16_224", "deit_tiny_patch16_224"),
        ("tRue", "tRue"),
    ],
)
def test_scalars(written: str, value: object) -> None:
    """Plain decimal numbers, true, false and null are themselves; all else, and all in quotes, is
    text.
    """
    read_value = read("x.yaml", f"a: {written}").root["a"]
    assert read_value == value
    assert type(read_value) is type(value)


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("1e-3", "did you mean `1.0e-3`"),
        ("no", 'did you mean `false` or `"no"`'),
        ("n", "did you mean `false`"),
        ("010", "did you mean `10`"),
        ("0x1F", "write it in decimal"),
        ("1_000", "did you mean `1000`"),
        ("1:30", 'did you mean `"1:30"`'),
        ("2026-01-02", 'did you mean `"2026-01-02"`'),
        (".inf", "not a finite number"),
        ("1.0e999", "too large"),
        ("9" * 30, "too large"),
        ('"a\\0b"', "control character"),
    ],
)
def test_traps_of_yaml_name_what_was_meant(written: str, hint: str) -> None:
    """Scalars that YAML 1.1 reads otherwise than people do are errors with their place and the
    right form.
    """
    error = problem(f"a: 1\nb:\n  - 2\n  - {written}\n")
    assert (error.file, error.line, error.key) == ("x.yaml", 4, "b[1]")
    assert hint in error.problem
    assert str(error).startswith("x.yaml:4: b[1]: ")


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("", 1, "is empty"),
        ("- a\n- b\n", 1, "must be a mapping"),
        ("\n3", 2, "must be a mapping that starts with `schema: 1`, not 3"),
        ("a: 1\nb: 2\na: 3\n", 3, "duplicate key 'a': it stands on line 1 already"),
        ("a: 1\nb: {c: 1,\n  c: 2}\n", 3, "duplicate key 'c'"),
        ("a: &x {k: 1}\nb:\n  <<: *x\n", 3, "merge keys"),
        ("a: 1\nb: !!python/object/apply:os.system [ls]\n", 2, "the tag"),
        ("a: !mine 3\n", 1, "the tag '!mine' is refused"),
        ("a: 1\nb: &x [*x]\n", 2, "an anchor contains itself"),
        ("a: *nowhere\n", 1, "undefined alias"),
        ("a: 1\n---\nb: 2\n", 2, "a second document starts here"),
        ("a:\n\t- b\n", 2, "a tab stands where YAML needs spaces"),
        ("a: [1, 2\nb: 3\n", 2, "is not valid YAML"),
        ("a: 'open\n", 2, "is not valid YAML"),
        ("a: 1\n5: 2\n", 2, "a key must be a word, not 5"),
        ("a: 1\n? [x]\n: 2\n", 2, "a key must be a word"),
        ("a: 1\nno: 2\n", 2, "`no` means false"),
        ("a: 1\nb: \x07\n", 2, "which YAML does not allow"),
        ('a: 1\nb: "\\UFFFFFFFF"\n', 2, "is not valid YAML"),
        ("a:\n" + "[" * 100, 2, "nested too deeply"),
        ("a:\n" + "- 1\n" * 10_000, 9999, "passes 10000 keys and values"),
        ("a: 1\n" * 200_001, None, "more than 1000000 characters"),
    ],
)
def test_what_is_no_plain_mapping_is_refused_at_its_line(
    text: str, line: int | None, expected: str
) -> None:
    """Whatever is not one document of plain values ends with one message that has the line."""
    error = problem(text)
    assert expected in error.problem
    assert error.line == line
    assert "\n" not in str(error)


def test_an_alias_is_its_value() -> None:
    """Aliases may save writing a list twice."""
    assert read("x.yaml", "a: &sizes [1, 2]\nb: *sizes\n").root["b"] == [1, 2]


def test_anchors_that_explode_are_refused() -> None:
    """A billion laughs is counted, not written out, which no memory would hold."""
    text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    text += "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 30))
    error = problem(text)
    assert f"passes {MAX_NODES} keys and values" in error.problem
    assert error.line == 4


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    """A missing file, a folder and a file that is not UTF-8 have an error each."""
    latin = tmp_path / "latin.yaml"
    latin.write_bytes("name: ok\nquestion: café\n".encode("latin-1"))
    cases = {
        tmp_path / "no.yaml": "no such file",
        tmp_path: "is a folder",
        latin: "is not UTF-8 text: byte 0xe9",
    }
    for path, expected in cases.items():
        with pytest.raises(SweepError, match=expected) as caught:
            read(path)
        assert caught.value.file == str(path)
        assert caught.value.line == (2 if path == latin else None)


def test_a_byte_order_mark_is_no_error(tmp_path: Path) -> None:
    """Some editors write one."""
    path = tmp_path / "bom.yaml"
    path.write_bytes(b"\xef\xbb\xbfname: x\n")
    assert read(path).root == {"name": "x"}


def test_did_you_mean_names_the_nearest_word_or_all() -> None:
    """The nearest word, whatever its case, else the list of known words."""
    assert did_you_mean("Keep_Rat", ["keep_rate", "layers"]) == "; did you mean 'keep_rate'?"
    assert did_you_mean("zzz", ["b", "a"]) == "; known here: a, b"
    assert did_you_mean("zzz", []) == ""


yaml_like = st.text(
    st.sampled_from(list("ab01:-?[]{},&*!|>'\"%@`#~ \n\t\\.<_eE+\x00é")), max_size=60
)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60) | yaml_like)
def test_any_text_is_read_or_refused(text: str) -> None:
    """Whatever the text, it is read or refused with a `SweepError`; nothing else escapes."""
    try:
        document = read("x.yaml", text)
    except SweepError as error:
        assert str(error).startswith("x.yaml")  # noqa: PT017 - refusing is as right as reading
    else:
        assert isinstance(document.root, dict)
