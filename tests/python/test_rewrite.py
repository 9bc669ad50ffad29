"""Whole files through the engine: where a rewrite stands, what stands around it, what is kept."""

import pytest

from tpu_migrate.config import Settings
from tpu_migrate.findings import Outcome, Safety

from .check import assert_rewritten, assert_unchanged, codes, migrate, without_todos

XM = "import torch_xla.core.xla_model as xm\n"
DIST = "import torch.distributed as dist\n"
RANK = "dist.get_rank() if dist.is_initialized() else 0"


# files with nothing to do


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        '"""Doc."""',
        '"""A doc about torch_xla."""\n',
        "# import torch_xla\n",
        "x = 1",
        "from __future__ import annotations\n",
    ],
)
def test_a_file_with_nothing_to_do_is_left(text):
    assert_unchanged(text)


def test_a_file_of_one_import_becomes_empty():
    assert_rewritten("import torch_xla", "")


# where an expression stands


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = xm.get_ordinal()\n", f"x = {RANK}\n"),
        ("x: int = xm.get_ordinal()\n", f"x: int = {RANK}\n"),
        ("x += xm.get_ordinal()\n", f"x += {RANK}\n"),
        ("f(xm.get_ordinal())\n", f"f({RANK})\n"),
        ("f(k=xm.get_ordinal())\n", f"f(k={RANK})\n"),
        ("f(*xm.get_ordinal())\n", f"f(*({RANK}))\n"),
        ("f(**xm.get_ordinal())\n", f"f(**({RANK}))\n"),
        ("x = [xm.get_ordinal(), 1]\n", f"x = [{RANK}, 1]\n"),
        ("x = [*xm.get_ordinal()]\n", f"x = [*({RANK})]\n"),
        ("x = xm.get_ordinal(), 1\n", f"x = {RANK}, 1\n"),
        ("x = {xm.get_ordinal(): 1}\n", f"x = {{{RANK}: 1}}\n"),
        ("x = a[xm.get_ordinal()]\n", f"x = a[{RANK}]\n"),
        ("x = a[xm.get_ordinal():]\n", f"x = a[({RANK}):]\n"),
        ("x = a[xm.get_ordinal()::2, 1]\n", f"x = a[({RANK})::2, 1]\n"),
        ("x = 42 + xm.get_ordinal()\n", f"x = 42 + ({RANK})\n"),
        ("x = -xm.get_ordinal()\n", f"x = -({RANK})\n"),
        ("x = not xm.get_ordinal()\n", f"x = not ({RANK})\n"),
        ("x = xm.get_ordinal() == 0\n", f"x = ({RANK}) == 0\n"),
        ("x = 0 < xm.get_ordinal() < 3\n", f"x = 0 < ({RANK}) < 3\n"),
        ("x = a and xm.get_ordinal()\n", f"x = a and ({RANK})\n"),
        ("x = xm.get_ordinal() if a else b\n", f"x = ({RANK}) if a else b\n"),
        ("x = a if xm.get_ordinal() else b\n", f"x = a if ({RANK}) else b\n"),
        ("x = a if b else xm.get_ordinal()\n", f"x = a if b else ({RANK})\n"),
        ("x = (xm.get_ordinal())\n", f"x = ({RANK})\n"),
        ("x = ((xm.get_ordinal()))\n", f"x = (({RANK}))\n"),
        ("x = xm.get_ordinal().bit_length()\n", f"x = ({RANK}).bit_length()\n"),
        ("x = xm.get_ordinal()[0]\n", f"x = ({RANK})[0]\n"),
        ("x = xm.get_ordinal()()\n", f"x = ({RANK})()\n"),
        ("x = lambda: xm.get_ordinal()\n", f"x = lambda: ({RANK})\n"),
        ("x = lambda r=xm.get_ordinal(): r\n", f"x = lambda r={RANK}: r\n"),
        ("if xm.get_ordinal(): pass\n", f"if {RANK}: pass\n"),
        ("while xm.get_ordinal(): pass\n", f"while {RANK}: pass\n"),
        ("assert xm.get_ordinal(), 'a'\n", f"assert {RANK}, 'a'\n"),
        ("assert a, xm.get_ordinal()\n", f"assert a, ({RANK})\n"),
        ("del a[xm.get_ordinal()]\n", f"del a[{RANK}]\n"),
        ("raise E(xm.get_ordinal())\n", f"raise E({RANK})\n"),
        ("if (n := xm.get_ordinal()): pass\n", f"if (n := {RANK}): pass\n"),
        ("f(n := xm.get_ordinal())\n", f"f(n := {RANK})\n"),
        ("def f():\n    return xm.get_ordinal()\n", f"def f():\n    return {RANK}\n"),
        ("def f():\n    yield xm.get_ordinal()\n", f"def f():\n    yield {RANK}\n"),
        ("def f():\n    yield from xm.get_ordinal()\n", f"def f():\n    yield from ({RANK})\n"),
        ("async def f():\n    await xm.get_ordinal()\n", f"async def f():\n    await ({RANK})\n"),
        ("def f(a=xm.get_ordinal(), *, b=xm.get_ordinal()): pass\n", f"def f(a={RANK}, *, b={RANK}): pass\n"),
        ("def f(a: xm.get_ordinal()): pass\n", f"def f(a: {RANK}): pass\n"),
        ("class C(xm.get_ordinal()): pass\n", f"class C({RANK}): pass\n"),
        ("x = [i for i in xm.get_ordinal()]\n", f"x = [i for i in ({RANK})]\n"),
        ("x = [i for i in y if xm.get_ordinal()]\n", f"x = [i for i in y if ({RANK})]\n"),
        ("x = [xm.get_ordinal() for i in y]\n", f"x = [({RANK}) for i in y]\n"),
        ("x = {i: xm.get_ordinal() for i in y}\n", f"x = {{i: ({RANK}) for i in y}}\n"),
        ("x = sum(xm.get_ordinal() for i in y)\n", f"x = sum(({RANK}) for i in y)\n"),
        ("for i in xm.get_ordinal(): pass\n", f"for i in ({RANK}): pass\n"),
        ("with xm.get_ordinal() as a: pass\n", f"with ({RANK}) as a: pass\n"),
        ("x = f'{xm.get_ordinal()}'\n", f"x = f'{{{RANK}}}'\n"),
        ("x = f'{xm.get_ordinal():>3}'\n", f"x = f'{{{RANK}:>3}}'\n"),
        ("x = f'{xm.get_ordinal()!r}'\n", f"x = f'{{{RANK}!r}}'\n"),
        ("x = f'{a:{xm.get_ordinal()}}'\n", f"x = f'{{a:{{{RANK}}}}}'\n"),
        ("match xm.get_ordinal():\n    case 0: pass\n", f"match {RANK}:\n    case 0: pass\n"),
        ("match a:\n    case 0 if xm.get_ordinal(): pass\n", f"match a:\n    case 0 if {RANK}: pass\n"),
        ("print(xm.get_ordinal(), end=''); f()\n", f"print({RANK}, end=''); f()\n"),
        ("@f(xm.get_ordinal())\ndef g(): pass\n", f"@f({RANK})\ndef g(): pass\n"),
        ("x = a or \\\n    xm.get_ordinal()\n", f"x = a or \\\n    ({RANK})\n"),
    ],
)
def test_a_conditional_expression_keeps_its_meaning_wherever_it_stands(before, after):
    result = migrate(DIST + XM + before)
    assert result.new.decode().replace("(", "").replace(")", "") == (DIST + after).replace("(", "").replace(
        ")", ""
    )
    assert_same_code(result.new.decode(), DIST + after)
    assert_rewritten(DIST + XM + before, result.new)


def assert_same_code(one: str, other: str) -> None:
    """Parentheses that change nothing are a matter of taste."""
    import ast

    assert ast.dump(ast.parse(one)) == ast.dump(ast.parse(other))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f'{xm.xla_device()}'", "f'{torch.device(\"tpu\")}'"),
        ('f"{xm.xla_device()}"', "f\"{torch.device('tpu')}\""),
        ('f"""{xm.xla_device()}"""', 'f"""{torch.device(\'tpu\')}"""'),
        ("rf'{xm.xla_device()}'", "rf'{torch.device(\"tpu\")}'"),
        ("f'{xm.xla_device()!s:>{n}}'", "f'{torch.device(\"tpu\")!s:>{n}}'"),
        ("f'{xm.xla_device()=}'", "f'{torch.device(\"tpu\")=}'"),
        ("'a' f'{xm.xla_device()}' \"b\"", "'a' f'{torch.device(\"tpu\")}' \"b\""),
    ],
)
def test_inside_an_f_string_the_other_quote_is_used(before, after):
    assert_rewritten(f"import torch\n{XM}x = {before}\n", f"import torch\nx = {after}\n")


def test_inside_an_f_string_in_an_f_string_no_quote_is_left():
    result = migrate(f"import torch\n{XM}x = f\"{{f'{{xm.xla_device()}}'}}\"\ny = xm.xla_device()\n")
    assert codes(result.findings) == ["TX101", "TX990"]
    assert b'y = torch.device("tpu")\n' in result.new


def test_a_match_inside_a_match_is_rewritten_in_it():
    new = migrate(
        f"{XM}y = xm.all_reduce(xm.REDUCE_SUM, xm.all_gather(x, dim=xm.get_ordinal()))\n"
    ).new.decode()
    assert new.endswith(f"\ny = all_reduce(dist.ReduceOp.SUM, all_gather(x, dim={RANK}))\n")
    new = migrate(f"{XM}xm.save(xm._maybe_convert_to_cpu(xm.mesh_reduce('a', b, max)), c)\n").new.decode()
    assert new.endswith("\nsave(to_cpu(mesh_reduce(b, max)), c)\n")


def test_a_match_inside_an_argument_that_is_dropped_goes_with_it():
    result = migrate(f"{XM}xm.rendezvous(f'step {{xm.get_ordinal()}}')\nx = 1\n", kind="single-process")
    assert result.new == b"x = 1\n"
    assert codes(result.findings) == []


# quotes, indentation, newlines


def test_the_quote_most_of_the_file_uses_is_used():
    assert_rewritten(
        f"import torch\n{XM}a = 'b', 'c'\nd = xm.xla_device()\n",
        "import torch\na = 'b', 'c'\nd = torch.device('tpu')\n",
    )
    assert_rewritten(
        f'import torch\n{XM}a = "b"\nd = xm.xla_device()\n',
        'import torch\na = "b"\nd = torch.device("tpu")\n',
    )


@pytest.mark.parametrize("indent", ["\t", "  ", "   ", "        "])
def test_indentation_is_kept(indent):
    before = f"import torch\n{XM}def f():\n{indent}if a:\n{indent * 2}xm.mark_step()\n{indent * 2}return xm.xla_device()\n"
    after = f'import torch\ndef f():\n{indent}if a:\n{indent * 2}return torch.device("tpu")\n'
    assert_rewritten(before, after)


def test_windows_newlines_are_used_in_all_that_is_added():
    before = (
        f"{XM}def f():\n    xm.rendezvous('a')\n    xm.save(b, c)\n    return xm.xla_device(1)\n".replace(
            "\n", "\r\n"
        )
    )
    new = migrate(before.encode()).new
    assert new.count(b"\n") == new.count(b"\r\n") > 20
    assert migrate(new).new == new


def test_a_string_over_several_lines_keeps_its_newlines():
    before = f'import torch\r\n{XM[:-1]}\r\ns = """a\nb\r\n"""\r\nd = xm.xla_device()\r\n'.encode()
    after = b'import torch\r\ns = """a\nb\r\n"""\r\nd = torch.device("tpu")\r\n'
    assert_rewritten(before, after)


def test_text_outside_latin_1_moves_no_column():
    result = migrate(f"import torch\n{XM}s = '日本😀'; d = xm.xla_device()\n", applied=False)
    assert next(f for f in result.findings if f.code == "TX101").column == 16
    assert result.new.decode().endswith("s = '日本😀'; d = torch.device('tpu')\n")


# comments


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "x = f(\n    xm.xla_device(),  # the chip\n    1,  # one\n)\n",
            'x = f(\n    torch.device("tpu"),  # the chip\n    1,  # one\n)\n',
        ),
        (
            "# above\nx = xm.xla_device()  # behind\n# below\n",
            '# above\nx = torch.device("tpu")  # behind\n# below\n',
        ),
        (
            "x = [\n    # first\n    xm.xla_device(),\n    # last\n]\n",
            'x = [\n    # first\n    torch.device("tpu"),\n    # last\n]\n',
        ),
        (
            "def f():\n    # only\n    xm.mark_step()\n    # last\n",
            "def f():\n    # only\n    pass\n    # last\n",
        ),
        (
            "if a:\n    xm.mark_step()  # cut\nelse:\n    b()  # not\n",
            "if a:\n    pass  # cut\nelse:\n    b()  # not\n",
        ),
        ("x = xm.xla_device(\n    # why\n)\n", '# why\nx = torch.device("tpu")\n'),
    ],
)
def test_a_comment_stays_beside_what_it_is_about(before, after):
    assert_rewritten(f"import torch\n{XM}y = 1\n{before}", f"import torch\ny = 1\n{after}")


@pytest.mark.parametrize(
    "call",
    [
        "x = xm.xla_device(  # one\n    # two\n)\n",
        "xm.mark_step(  # one\n    # two\n)\n",
        "xm.optimizer_step(\n    o,  # one\n    barrier=True,  # two\n)\n",
        "x = (\n    xm  # one\n    # two\n    .xla_device()\n)\n",
        "xm.rendezvous(  # one\n    'x',  # two\n)\n",
        "x = xm.mesh_reduce(  # one\n    'x',  # two\n    y,\n    max,\n)\n",
        "x = xm.all_reduce(\n    xm.REDUCE_SUM,  # one\n    y,  # two\n)\n",
        "x = xm.all_reduce(\n    # one\n    xm.REDUCE_SUM,\n    # two\n    y,\n)\n",
        "xm.master_print(  # one\n    x,  # two\n)\n",
        "xm.save(\n    x,  # one\n    # two\n    y,\n)\n",
    ],
)
def test_no_comment_inside_a_call_is_lost_and_their_order_is_kept(call):
    new = migrate(f"{XM}y = 1\n{call}z = 1\n", kind="multi-process").new.decode()
    body = new[new.index("y = 1\n") :]
    assert 0 < body.index("# one") < body.index("# two") < body.index("\nz = 1\n")


def test_comments_of_the_first_statement_stay_below_the_helper():
    new = migrate(f"{XM}x = xm.all_reduce(\n    xm.REDUCE_SUM,\n    # loss\n    y,\n)\n").new.decode()
    assert new.index("def all_reduce") < new.index("x = all_reduce") < new.index("# loss")


# several statements, one line


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("if a: x = xm.xla_device()\n", 'if a: x = torch.device("tpu")\n'),
        ("def f(): return xm.xla_device()\n", 'def f(): return torch.device("tpu")\n'),
        ("class C: d = xm.xla_device()\n", 'class C: d = torch.device("tpu")\n'),
        ("a(); x = xm.xla_device(); xm.mark_step()\n", 'a(); x = torch.device("tpu")\n'),
        ("if __name__ == '__main__': xm.mark_step(); main()\n", "if __name__ == '__main__': main()\n"),
        ("with a: xm.mark_step(); b()\n", "with a: b()\n"),
        ("for i in a: b(); xm.mark_step()\n", "for i in a: b()\n"),
    ],
)
def test_statements_that_share_a_line_are_rewritten_in_it(before, after):
    result = migrate(f"import torch\n{XM}{before}")
    assert result.new.decode().replace("'tpu'", '"tpu"') == f"import torch\n{after}"
    assert_rewritten(f"import torch\n{XM}{before}", result.new)


def test_a_statement_that_becomes_several_is_left_where_it_shares_its_line():
    assert_unchanged(f"{XM}a(); xm.optimizer_step(o)\n", open=["TX301", "TX990"], kind="multi-process")
    assert_unchanged(f"{XM}if a: xm.optimizer_step(o)\n", open=["TX301", "TX990"], kind="multi-process")
    assert_unchanged(f"{XM}f(lambda: xm.optimizer_step(o))\n", open=["TX301", "TX990"], kind="multi-process")


# decisions


def test_an_argument_is_not_evaluated_twice():
    result = assert_unchanged(
        f"{XM}def f():\n    xm.optimizer_step(make())\n", open=["TX301", "TX990"], kind="multi-process"
    )
    assert "`make()` would be evaluated twice; give it a name first" in result.findings[-1].message


def test_a_call_no_rule_knows_is_left_with_a_finding():
    result = assert_unchanged(f"{XM}xm.mark_step(*args)\n", open=["TX201", "TX990"])
    assert "its arguments are of a form no rule knows" in result.findings[-1].message


def test_a_function_that_is_passed_on_is_left_with_a_finding():
    result = assert_unchanged(f"{XM}run(xm.mark_step)\n", open=["TX201", "TX990"])
    assert "passed on, not called here" in result.findings[-1].message


def test_attributes_behind_a_match_are_kept():
    assert_rewritten(
        f"import torch\n{XM}t = xm.xla_device().type.upper()\n",
        'import torch\nt = torch.device("tpu").type.upper()\n',
    )


def test_an_attribute_of_a_function_is_a_use_of_the_function():
    assert_unchanged(f"{XM}print(xm.mark_step.__doc__)\n", open=["TX201", "TX990"])


def test_a_symbol_nobody_listed_has_a_finding():
    assert_unchanged(f"{XM}xm.no_such_function(1)\n", open=["TX990", "TX999"])
    assert_unchanged("import torch_xla.no.such as m\nm.f()\n", open=["TX990", "TX999"])


def test_an_assignment_to_a_torch_xla_name_is_found():
    result = migrate(f"{XM}xm.mark_step = lambda: None\n", Settings(comments=False))
    assert codes(result.findings)
    assert result.new == result.old


def test_a_deleted_name_is_found_or_kept():
    result = migrate("import torch_xla\nx = 1\ndel torch_xla\n", Settings(comments=False))
    compile(result.new, "new", "exec")
    assert b"del torch_xla" not in result.new or b"import torch_xla\n" in result.new


# findings


def test_a_rewritten_finding_says_what_was_and_what_is():
    result = migrate(f"import torch\n{XM}d = xm.xla_device()\n")
    (finding,) = result.findings
    assert (finding.code, finding.name, finding.safety, finding.outcome) == (
        "TX101",
        "xla-device",
        Safety.SAFE,
        Outcome.REWRITTEN,
    )
    assert (finding.before, finding.after) == ("xm.xla_device()", 'torch.device("tpu")')
    assert (finding.line, finding.column, finding.end_line, finding.end_column) == (2, 5, 2, 24)
    assert finding.symbol == "torch_xla.core.xla_model.xla_device"
    assert finding.message


def test_the_after_of_a_finding_is_what_stands_in_the_file():
    result = migrate(f"{XM}y = xm.all_reduce(xm.REDUCE_SUM, x)\n")
    finding = next(f for f in result.findings if f.code == "TX325")
    assert finding.after in result.new.decode()


def test_findings_are_sorted_by_place():
    result = migrate(f"{XM}xm.mark_step()\nx = xm.xla_device(1)\ny = xm.xla_device()\n")
    assert [f.line for f in result.findings] == sorted(f.line for f in result.findings)


def test_the_counts_add_up():
    result = migrate(f"{XM}xm.mark_step()\nx = xm.xla_device(1)\n")
    assert (result.references, result.rewritten) == (3, 1)
    result = migrate(f"{XM}xm.mark_step()\n")
    assert (result.references, result.rewritten) == (2, 2)


def test_device_agnostic_code_asks_torch_which_device_there_is():
    assert_rewritten(
        f"import torch\n{XM}d = xm.xla_device()\nif xm.is_xla_tensor(x):\n    f(d)\n",
        'import torch\nd = torch.accelerator.current_accelerator() or torch.device("cpu")\n'
        'if x.device.type != "cpu":\n    f(d)\n',
        settings=Settings(device="accelerator"),
    )


def test_what_a_review_says_is_what_the_finding_says():
    result = migrate(f"{XM}xm.mark_step()\n")
    (finding,) = result.findings
    assert finding.safety is Safety.REVIEW
    assert finding.message.startswith("Nothing has to be cut any more")


def test_todo_comments_name_the_action_in_one_line():
    new = migrate(f"{XM}op = xm.REDUCE_AND\n").new
    (line,) = [line for line in new.decode().splitlines() if "TODO" in line]
    assert line.startswith("# TODO(tpu-migrate TX324): ")
    assert len(line) < 200
    assert without_todos(new).decode() == f"{XM}op = xm.REDUCE_AND\n"


# order


def test_code_is_evaluated_in_the_order_it_was():
    assert_rewritten(
        f"import torch\n{XM}f(a(), xm.xla_device(), b(xm.xla_device()))\n",
        'import torch\nf(a(), torch.device("tpu"), b(torch.device("tpu")))\n',
    )
